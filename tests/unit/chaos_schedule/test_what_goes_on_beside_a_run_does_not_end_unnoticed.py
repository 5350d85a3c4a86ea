"""Who watches, restarts, samples or disturbs in a thread of its own: what breaks that off breaks off the run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from tests.chaos import aborts
from tests.chaos.aborts import Aborts
from tests.chaos.companion import Companion
from tests.chaos.resources import Resources
from tests.chaos.samples import Samples, hardly_seen
from tests.chaos.service import Service
from tests.chaos.stage import Place
from tests.chaos.supervisor import Supervisor
from tests.support.waiting import wait_until


@dataclass
class Odd:
    """A service of which something can't be asked."""

    asked: threading.Event = field(default_factory=threading.Event)
    lock: Any = field(default_factory=threading.RLock)
    name: str = "sink-1"

    def tree(self) -> None:
        self._fails()

    def notice_end(self) -> None:
        self._fails()

    def _fails(self) -> None:
        self.asked.set()
        raise ChildProcessError("could not be started")


MADE: list[Callable[[Service], AbstractContextManager[object]]] = [
    lambda odd: Samples([odd]),
    lambda odd: Resources([odd], 0.01),
    lambda odd: Supervisor([odd]),
]


@pytest.mark.parametrize("made", MADE)
def test_an_error_in_its_thread_is_raised_at_the_end(
    made: Callable[[Service], AbstractContextManager[object]],
) -> None:
    odd = Odd()
    with pytest.raises(ChildProcessError), made(cast(Service, odd)):
        assert odd.asked.wait(20)


def test_a_supervisor_that_is_ended_before_says_so_then() -> None:
    odd = Odd()
    supervisor = Supervisor([cast(Service, odd)])
    with pytest.raises(ChildProcessError), supervisor:
        assert odd.asked.wait(20)
        supervisor.end()
        pytest.fail("the error was not raised by end()")


def test_whoever_aborts_transactions_goes_on_without_a_broker_and_ends_by_anything_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = threading.Event()

    def producer(properties: dict[str, Any]) -> None:
        asked.set()
        raise MemoryError("no producer")

    monkeypatch.setattr(aborts, "BETWEEN_S", 0.01)
    monkeypatch.setattr(aborts, "Producer", producer)
    with pytest.raises(MemoryError), Aborts(cast(Place, SimpleNamespace(input="orders")), "127.0.0.1:1"):
        assert asked.wait(20)


def test_what_is_being_raised_already_is_not_hidden() -> None:
    broken = threading.Event()

    def fails() -> None:
        broken.set()
        raise ValueError("in the thread")

    with pytest.raises(KeyError), Companion("odd", 0.01, fails):
        assert broken.wait(20)
        raise KeyError("in the block")


def test_a_service_that_was_hardly_looked_at_is_named() -> None:
    taken = [(second, name, 1, 100) for second in range(12) for name in ("processor-1", "sink-1")]
    assert hardly_seen(["processor-1", "sink-1"], taken, 60) == ""
    assert hardly_seen(["processor-1", "sink-2"], taken, 20) == "the memory of sink-2 was looked at 0 times in 20 s"
    assert "looked at 12 times in 100 s" in hardly_seen(["processor-1"], taken, 100)
    assert "looked at 2 times" in hardly_seen(["sink-1"], taken[:4], 5), "three are the least"


def test_samples_of_a_service_that_is_there_suffice() -> None:
    here = SimpleNamespace(name="sink-1", tree=lambda: [psutil.Process()], resident_bytes=lambda: 100)
    with Samples([cast(Service, here)]) as samples:
        wait_until(lambda: len(samples.taken) >= 3, 30, "three looks")
    assert samples.missing() == ""
