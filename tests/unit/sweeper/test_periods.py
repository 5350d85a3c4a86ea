"""One run at a time, at once and then at intervals; an error or a stop ends it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from threading import Event, Thread, current_thread

import pytest

from sweeper.periods import Schedule
from tests.support.running_thread import RunningThread
from tests.support.waiting import wait_until


def test_the_first_run_is_at_once_and_further_ones_follow() -> None:
    runs: list[int] = []

    def job() -> None:
        runs.append(1)
        if len(runs) == 3:
            schedule.request_stop()

    schedule = Schedule(job, 0.05)
    schedule.run(10)
    assert len(runs) == 3
    assert not schedule.alive


def test_an_error_of_the_job_ends_it_and_is_raised() -> None:
    def job() -> None:
        raise ValueError("no good")

    with pytest.raises(ValueError, match="no good"):
        Schedule(job, 3600).run(10)


def test_a_stop_waits_for_the_run_that_is_under_way() -> None:
    started, release, finished = Event(), Event(), Event()

    def job() -> None:
        started.set()
        assert release.wait(30)
        finished.set()

    schedule = Schedule(job, 0.01)
    thread = Thread(target=schedule.run, args=(30,))
    thread.start()
    assert started.wait(30)
    assert schedule.alive
    assert schedule.running
    schedule.request_stop()
    assert thread.is_alive()
    release.set()
    thread.join(30)
    assert not thread.is_alive()
    assert finished.is_set()


def test_runs_never_overlap_and_missed_ones_are_made_up_for_by_one(caplog: pytest.LogCaptureFixture) -> None:
    inside, overlapped, runs = Event(), Event(), []

    def job() -> None:
        if inside.is_set():
            overlapped.set()
        inside.set()
        runs.append(1)
        if len(runs) == 1:
            wait_until(
                lambda: caplog.text.count("a sweep takes longer than sweeper.interval_s") >= 3, 60, "missed runs"
            )
        else:
            schedule.request_stop()
        inside.clear()

    schedule = Schedule(job, 0.02)
    schedule.run(10)
    assert len(runs) == 2
    assert not overlapped.is_set()


@pytest.mark.guarantee("P8.13")
def test_a_clock_that_is_put_back_holds_up_no_run() -> None:
    """What is planned by then lies in the future of the new time; a fault test steps a real process's clock."""
    runs = Event()

    def job() -> None:
        if runs.is_set():
            schedule.request_stop()
        runs.set()

    schedule = Schedule(job, 0.5)
    thread = Thread(target=schedule.run, args=(10,), daemon=True)
    thread.start()
    assert runs.wait(30)
    schedule.planned.modify(next_run_time=datetime.now(UTC) + timedelta(hours=1))
    thread.join(30)
    assert not thread.is_alive()


def test_a_stop_before_the_start_runs_nothing() -> None:
    def job() -> None:
        raise AssertionError("ran")

    schedule = Schedule(job, 3600)
    schedule.request_stop()
    schedule.run(10)


def test_what_is_watched_is_looked_at_again_after_an_error_too_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweeper.periods.COUNT_PAUSE_S", 0.02)
    looks: list[int] = []
    closed = Event()

    def look() -> float:
        looks.append(1)
        if len(looks) == 1:
            raise ValueError("logged, and no reason to end")
        if len(looks) == 3:
            schedule.request_stop()
        return 0.03 if len(looks) == 2 else 3600.0

    schedule = Schedule(lambda: None, 3600)
    schedule.watch(look, closed.set)
    schedule.run(10)
    assert len(looks) == 3
    assert closed.is_set()


def test_what_the_watches_wait_for_is_given_up_after_the_last_run() -> None:
    running, watching, given_up, closed = Event(), Event(), Event(), Event()

    def job() -> None:
        running.set()
        wait_until(lambda: not schedule.alive, what="the stop")
        assert not given_up.is_set()

    def look() -> float:
        watching.set()
        assert given_up.wait(30)
        return 3600.0

    schedule = Schedule(job, 3600)
    schedule.watch(look, closed.set)
    stopping = RunningThread(lambda: (running.wait(30), watching.wait(30), schedule.request_stop()))
    schedule.run(30, given_up.set)
    stopping.wait_ended()
    assert closed.is_set()


@pytest.mark.guarantee("P8.17")
def test_watches_that_continue_share_one_limit_and_keep_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweeper.periods.JOIN_S", 1.0)
    go, looking, closed = Event(), list[Thread](), Event()

    def look() -> float:
        looking.append(current_thread())
        go.wait(30)
        return 3600.0

    schedule = Schedule(lambda: None, 3600)
    for _ in range(6):
        schedule.watch(look, closed.set)
    stopping = RunningThread(lambda: (wait_until(lambda: len(looking) == 6, what="all"), schedule.request_stop()))
    began_s = time.monotonic()
    schedule.run(10)
    stopping.wait_ended()
    assert time.monotonic() - began_s < 5
    assert all(thread.is_alive() and thread.daemon for thread in looking)
    assert not closed.is_set()
    go.set()
    for thread in looking:
        thread.join(30)
        assert not thread.is_alive()
