"""The schedule: one sweep at a time, at fixed intervals, missed ones made up for by one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Condition, Event

from apscheduler.schedulers.background import BackgroundScheduler

log = logging.getLogger(__name__)


class Schedule:
    """Runs a job at once and then at intervals, until told to stop or until the job raises."""

    def __init__(self, job: Callable[[], None], interval_s: float) -> None:
        """Start nothing yet.

        Args:
            job: what it raises ends the schedule.
            interval_s: between the starts of two runs, s; a run that takes longer delays the next.
        """
        self._job = job
        self._error: BaseException | None = None
        self._ended = Event()
        self._running = False
        self._idle = Condition()
        self._scheduler = BackgroundScheduler(timezone=UTC)
        self._scheduler.add_job(
            self._run,
            "interval",
            seconds=interval_s,
            next_run_time=datetime.now(UTC),
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
        )

    @property
    def alive(self) -> bool:
        """Whether further runs will come."""
        return bool(self._scheduler.running) and not self._ended.is_set()

    @property
    def running(self) -> bool:
        """Whether the job runs now."""
        return self._running

    def run(self, drain_s: float) -> None:
        """Work until `request_stop` or an error.

        Args:
            drain_s: how long a run may go on after that, s.

        Raises:
            BaseException: whatever the job raised.
        """
        self._scheduler.start()
        try:
            self._ended.wait()
        finally:
            self._scheduler.shutdown(wait=False)
            with self._idle:
                if not self._idle.wait_for(lambda: not self._running, drain_s):
                    log.warning("a sweep still runs after %g s and is left to its end", drain_s)
        if self._error is not None:
            raise self._error

    def request_stop(self) -> None:
        """Ask `run` to end; from any thread, also before it was called."""
        self._ended.set()

    def _run(self) -> None:
        with self._idle:
            if self._ended.is_set():
                return
            self._running = True
        try:
            self._job()
        except BaseException as error:  # noqa: BLE001 - handed to `run`, which raises it
            self._error = error
            self._ended.set()
        finally:
            with self._idle:
                self._running = False
                self._idle.notify_all()
