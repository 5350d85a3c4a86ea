"""A job waits for its canary, and pauses if too many of its records come back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.integration.redrive.dying import killed
from tests.integration.redrive.handling import Handling
from tests.integration.redrive.scenario import Scenario
from tests.support.running_thread import RunningThread
from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.records.operation import Changed, Mark, Requested, State
from waitreg.redrive import execution, outcome_check
from waitreg.redrive.executor import Executor


@contextmanager
def sink_of(at: Scenario) -> Iterator[None]:
    """Bring the tables up to their topics again and again."""
    ended = threading.Event()

    def copy() -> None:
        while not ended.is_set():
            at.read_waits()
            at.read()
            ended.wait(0.2)

    sink = RunningThread(copy)
    try:
        yield
    finally:
        ended.set()
        sink.wait_ended()


def executor(at: Scenario, job: Requested, **limits: Any) -> Callable[[], Any]:
    return Executor(changed(at.settings, "redrive", **limits), job, threading.Event(), lambda _: None).run


def pauses(at: Scenario) -> list[tuple[str, str]]:
    """Return who paused the job, and why."""
    changes = [event for event in at.events() if isinstance(event, Changed)]
    return [(event.by, event.reason) for event in changes if event.state is State.PAUSED]


def marked(at: Scenario) -> int:
    """Return how many records were sent; the group deletes those that it has committed."""
    return sum(isinstance(event, Mark) for event in at.events())


@pytest.fixture
def without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the outcomes before each chunk, soon by a snapshot that has the last resumption."""
    monkeypatch.setattr(execution, "SNAPSHOT_S", 1.0)
    monkeypatch.setattr(outcome_check, "CHECK_S", 0.0)
    monkeypatch.setattr(outcome_check, "_PAUSE_PER_CHECK", 0)


@pytest.mark.guarantee("R1.13")
def test_the_others_are_sent_when_the_canary_is_settled(at: Scenario, handling: Handling) -> None:
    at.show_dead_letters(12)
    handling.held = {b"value 3"}
    processor = handling.start()
    with sink_of(at):
        running = RunningThread(executor(at, at.request(canary=4).job))
        wait_until(lambda: processor.done == 3, 60, "three of the canary")
        assert marked(at) == 4
        handling.ended.set()
        wait_until(lambda: running.ended, 60, "the end of the job")
    assert running.error is None
    assert marked(at) == 12
    assert pauses(at) == []


@pytest.mark.guarantee("R1.13")
def test_a_canary_that_comes_back_pauses_the_job(at: Scenario, handling: Handling) -> None:
    at.show_dead_letters(12)
    handling.refused = {b"value %d" % number for number in range(3)}
    handling.start()
    job = at.request(canary=4).job
    with sink_of(at):
        assert executor(at, job)().state is State.PAUSED
        reason = "3 of 4 canary records came back as dead letters, redrive.canary_above is 0.1"
        assert pauses(at) == [("system", reason)]
        assert marked(at) == 4
        # Resumed by an operator, it begins with another canary, which is settled.
        assert executor(at, job)().state is State.FINISHED
    assert marked(at) == 12


def test_a_canary_that_is_not_consumed_pauses_the_job(at: Scenario) -> None:
    at.show_dead_letters(3)
    with sink_of(at):
        assert executor(at, at.request(canary=2).job, canary_timeout_s=2)().state is State.PAUSED
    assert pauses(at) == [("system", "the canary wasn't settled in 2 s: 2 not consumed yet")]
    assert marked(at) == 2


def test_after_a_crash_the_job_waits_for_the_canary_that_is_out(at: Scenario) -> None:
    at.show_dead_letters(5)
    job = at.request(canary=2).job
    killed(at.settings, job, "commit", "after")
    with sink_of(at):
        assert executor(at, job, canary_timeout_s=2)().state is State.PAUSED
    assert marked(at) == 2


@pytest.mark.guarantee("R1.13")
def test_records_that_come_back_pause_the_job(at: Scenario, handling: Handling, without_pause: None) -> None:
    at.show_dead_letters(400)
    handling.refused = {b"value %d" % number for number in range(400) if number % 4}
    handling.start()
    job = at.request(rate=20.0).job
    with sink_of(at):
        assert executor(at, job)().state is State.PAUSED
        ((by, reason),) = pauses(at)
        assert by == "system"
        assert reason.endswith("among at most 100 that were sent one after another; redrive.pause_above is 0.5")
        assert marked(at) < 400
        shown = [("paused", "system", reason)]
        changed = "select state, changed_by, changed_reason from operation"
        wait_until(lambda: at.rows(changed) == shown, 60, "the pause in the tables")
        # Those that came back before don't count for a job that was resumed.
        handling.refused = set()
        assert executor(at, job)().state is State.FINISHED
    assert marked(at) == 400
