"""The sweeper's periods: each piece of work at once and then at intervals, never twice at the same time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Event, Lock
from typing import Final

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, JobSubmissionEvent
from apscheduler.executors.base import BaseExecutor, run_job
from apscheduler.job import Job
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from wait_registry.daemon_threads import DaemonThreads

log = logging.getLogger(__name__)
# Its warnings name its own functions; `Schedule` logs the same.
logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)

CLOCK_CHECK_S = 5.0
# A clock that is set back by less delays a run by less, too.
CLOCK_SLACK = timedelta(seconds=1)
COUNT_PAUSE_S: Final = 30.0
# A large backlog takes Postgres at most a twentieth of one core.
COUNT_PAUSE_FACTOR: Final = 20.0
# By then, all that is watched has ended, or is abandoned.
JOIN_S: Final = 5.0
# More than there are jobs, each of which runs once at a time.
THREADS: Final = 10


def pause_after(took_s: float) -> float:
    """Return how long to wait after counting in Postgres took so long, both s."""
    return max(COUNT_PAUSE_S, COUNT_PAUSE_FACTOR * took_s)


class Schedule:
    """Runs a job until `request_stop` or until it raises; one run replaces all that were missed."""

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
        self._scheduler = BackgroundScheduler(executors={"default": _Executor()}, timezone=UTC)
        self._scheduler.add_listener(self._still_at_work, EVENT_JOB_MAX_INSTANCES)
        self._watches: list[_Watch] = []
        self.planned = self._plan(self._run, interval_s)

    def watch(self, look: Callable[[], float], close: Callable[[], None] = lambda: None) -> None:
        """Have something done alongside, in a thread of its own, which no sweep delays.

        Args:
            look: returns the pause until it is called again, s. An error is logged, and it is called again.
            close: called at the end, unless ``look`` still runs.
        """
        self._watches.append(_Watch(look, close, self._plan))

    @property
    def alive(self) -> bool:
        """Whether further runs will come."""
        return bool(self._scheduler.running) and not self._ended.is_set()

    @property
    def running(self) -> bool:
        """Whether the job runs now."""
        return self._at_work.locked()

    def run(self, drain_s: float, give_up: Callable[[], None] = lambda: None) -> None:
        """Work until `request_stop` or an error.

        Args:
            drain_s: how long a run may continue after that, s.
            give_up: called then, to make what is watched end soon.

        Raises:
            BaseException: the error that the job raised.
        """
        self._scheduler.start()
        try:
            while not self._ended.wait(min(CLOCK_CHECK_S, self._interval.total_seconds())):
                self._follow_the_clock()
        finally:
            self._scheduler.shutdown(wait=False)
            if not _ends(self._at_work, drain_s):
                log.warning("a sweep still runs after %g s, stopping without it", drain_s)
            give_up()
            join_until_s = time.monotonic() + JOIN_S
            for watch in self._watches:
                watch.end(join_until_s - time.monotonic())
        if self._error is not None:
            raise self._error

    def request_stop(self) -> None:
        """Ask `run` to end; from any thread, also before it was called."""
        self._ended.set()

    def _plan(self, work: Callable[[], None], interval_s: float) -> Job:
        return self._scheduler.add_job(
            work,
            "interval",
            seconds=interval_s,
            next_run_time=datetime.now(UTC),
            coalesce=True,
            max_instances=1,
            misfire_grace_time=None,
        )

    def _still_at_work(self, late: JobSubmissionEvent) -> None:
        if late.job_id == self.planned.id:
            log.warning(
                "a sweep takes longer than sweeper.interval_s (%g s), and the next one starts when it has ended. If "
                "this lasts, Postgres or Kafka may not answer: see /health/ready",
                self._interval.total_seconds(),
            )

    def _follow_the_clock(self) -> None:
        """Plan again when the host's clock was set back: APScheduler would wait until it has caught up."""
        for job in self._scheduler.get_jobs():
            planned, latest = job.next_run_time, datetime.now(UTC) + job.trigger.interval
            if planned > latest + CLOCK_SLACK:
                log.warning("this host's clock was set back: the run planned for %s comes at %s", planned, latest)
                job.modify(next_run_time=latest)

    def _run(self) -> None:
        with self._at_work:
            if self._ended.is_set():
                return
            try:
                self._job()
            except BaseException as error:  # noqa: BLE001 - handed to `run`, which raises it
                self._error = error
                self._ended.set()


class _Executor(BaseExecutor):  # type: ignore[misc]
    """Runs jobs in threads that don't keep the process: a POST, for example, ends at its timeout only."""

    def __init__(self) -> None:
        super().__init__()
        # Used again: for each thread that uses Spark, the JVM has one, too.
        self._threads = DaemonThreads(THREADS, "period")

    def shutdown(self, wait: bool = True) -> None:
        self._threads.close()

    def _do_submit_job(self, job: Job, run_times: list[datetime]) -> None:
        def run() -> None:
            self._run_job_success(job.id, run_job(job, job._jobstore_alias, run_times, self._logger.name))

        self._threads.submit(run)


class _Watch:
    """What is done alongside the sweeps; `Schedule.watch` has the arguments."""

    def __init__(
        self, look: Callable[[], float], close: Callable[[], None], plan: Callable[[Callable[[], None], float], Job]
    ) -> None:
        self._look = look
        self._close = close
        self._at_work = Lock()
        self._planned = plan(self._run, COUNT_PAUSE_S)

    def _run(self) -> None:
        with self._at_work:
            pause_s = self._look()
        with suppress(JobLookupError):  # the schedule has ended meanwhile
            self._planned.reschedule("interval", seconds=pause_s)

    def end(self, limit_s: float) -> None:
        if _ends(self._at_work, limit_s):
            self._close()


def _ends(at_work: Lock, limit_s: float) -> bool:
    """Wait for the end of what holds a lock, s at most; return whether it ended."""
    ended = at_work.acquire(timeout=max(0.0, limit_s))
    if ended:
        at_work.release()
    return ended
