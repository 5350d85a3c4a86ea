"""One loop repeats work through an outage, with pauses that its caller chooses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.outage import Backoff, through_outage


def failing(*errors: Exception) -> Callable[[], str]:
    left = list(errors)

    def work() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return work


def test_work_is_repeated_with_the_pauses_that_are_asked_for() -> None:
    slept: list[float] = []
    work = failing(TransientError("away"), TransientError("away"))
    assert through_outage(work, lambda _: 0.5, slept.append) == "done"
    assert slept == [0.5, 0.5]


def test_an_outage_that_is_given_up_raises_its_last_error() -> None:
    pauses = iter([0.5, None])
    work = failing(TransientError("first"), TransientError("last"))
    with pytest.raises(TransientError, match="last"):
        through_outage(work, lambda _: next(pauses), lambda _: None)


def test_an_error_that_does_not_pass_is_raised_at_once() -> None:
    work = failing(ConfigurationError("wrong"))
    with pytest.raises(ConfigurationError):
        through_outage(work, lambda _: 0.0, lambda _: pytest.fail("slept"))


def test_pauses_grow_until_a_failure_comes_long_after_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("wait_registry.outage.time.monotonic", lambda: now[0])
    backoff = Backoff(1.0, 3.0, lambda: 1.0, forget_s=60.0)
    assert [backoff.next_s(), backoff.next_s(), backoff.next_s()] == [1.0, 2.0, 3.0]
    now[0] += 64.0
    assert backoff.next_s() == 1.0
