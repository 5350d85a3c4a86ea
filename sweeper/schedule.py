"""The schedule: one sweep at a time, at fixed intervals; one sweep replaces all that were missed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event, Lock

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, JobSubmissionEvent
from apscheduler.schedulers.background import BackgroundScheduler

log = logging.getLogger(__name__)
# Its warnings name its own functions; `Schedule` logs the same.
logging.getLogger("apscheduler").setLevel(logging.ERROR)

CLOCK_CHECK_S = 5.0
# A clock that is set back by less delays a run by less, too.
CLOCK_SLACK = timedelta(seconds=1)


class Schedule:
    """Runs a job at once and then at intervals, until `request_stop` or until the job raises."""

    def __init__(self, job: Callable[[], None], interval_s: float) -> None:
        """Start nothing yet.

        Args:
            job: what it raises ends the schedule.
            interval_s: between the starts of two runs, s; a run that takes longer delays the next.
        """
        self._job = job
        self._error: BaseException | None = None
        self._ended = Event()
        self._at_work = Lock()
        self._interval = timedelta(seconds=interval_s)
        self._scheduler = BackgroundScheduler(timezone=UTC)
        self._scheduler.add_listener(self._still_at_work, EVENT_JOB_MAX_INSTANCES)
        self.planned = self._scheduler.add_job(
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
        return self._at_work.locked()

    def run(self, drain_s: float) -> None:
        """Work until `request_stop` or an error.

        Args:
            drain_s: how long a run may continue after that, s.

        Raises:
            BaseException: the error that the job raised.
        """
        self._scheduler.start()
        try:
            while not self._ended.wait(min(CLOCK_CHECK_S, self._interval.total_seconds())):
                self._follow_the_clock()
        finally:
            self._scheduler.shutdown(wait=False)
            if self._at_work.acquire(timeout=drain_s):
                self._at_work.release()
            else:
                log.warning("a sweep still runs after %g s, stopping without it", drain_s)
        if self._error is not None:
            raise self._error

    def request_stop(self) -> None:
        """Ask `run` to end; from any thread, also before it was called."""
        self._ended.set()

    def _still_at_work(self, _: JobSubmissionEvent) -> None:
        log.warning(
            "a sweep takes longer than sweeper.interval_s (%g s), and the next one starts when it has ended. If this "
            "lasts, Postgres or Kafka may not answer: see /health/ready",
            self._interval.total_seconds(),
        )

    def _follow_the_clock(self) -> None:
        """Plan again when the host's clock was set back: APScheduler would wait until it has caught up."""
        planned, latest = self.planned.next_run_time, datetime.now(UTC) + self._interval
        if planned > latest + CLOCK_SLACK:
            log.warning("this host's clock was set back: the run planned for %s comes at %s", planned, latest)
            self.planned.modify(next_run_time=latest)

    def _run(self) -> None:
        with self._at_work:
            if self._ended.is_set():
                return
            try:
                self._job()
            except BaseException as error:  # noqa: BLE001 - handed to `run`, which raises it
                self._error = error
                self._ended.set()
