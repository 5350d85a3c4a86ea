"""After a request to stop, a service gives up its waits at the limit, and only then."""

from __future__ import annotations

import threading

import pytest

from tests.support.waiting import wait_until
from wait_registry.stop_limit import stop_limit


def test_a_running_block_is_given_up_at_the_limit_after_the_stop() -> None:
    stop, given_up = threading.Event(), threading.Event()
    with stop_limit(0.0, stop, given_up.set):
        assert not given_up.wait(0.05), "no stop was requested"
        stop.set()
        assert given_up.wait(30)


@pytest.mark.parametrize("told", [False, True])
def test_a_block_that_has_ended_gives_nothing_up(told: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wait_registry.stop_limit.POLL_INTERVAL_S", 0.01)
    before = set(threading.enumerate())
    stop, given_up = threading.Event(), threading.Event()
    with stop_limit(60.0, stop, given_up.set):
        if told:
            stop.set()
        [watching] = set(threading.enumerate()) - before
    wait_until(lambda: not watching.is_alive(), 30, "the end of the watch")
    assert not given_up.is_set()
