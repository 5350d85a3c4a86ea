"""Executes a job: from fence to fence, until it ends or something stops it; an outage is waited out."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import psycopg

from wait_registry.clock import Clock, SystemClock
from wait_registry.errors import FencedError, TransientError
from wait_registry.kafka.clients import admin
from wait_registry.outage import Backoff, through_outage
from wait_registry.records.operation import Requested
from wait_registry.settings.tree import Settings
from waitreg.redrive.approval import with_approval
from waitreg.redrive.classifier import Classifier
from waitreg.redrive.execution import Chunk, Restart, Snapshot, Task, fence
from waitreg.redrive.outcome_check import OutcomeCheck
from waitreg.redrive.progress import Progress
from waitreg.redrive.rate_limit import RateLimit
from waitreg.redrive.refusals import Refusals

log = logging.getLogger(__name__)

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 30.0


class Executor:
    """One executor of one job; `run` ends with the job, or with the state that stopped it."""

    def __init__(
        self,
        settings: Settings,
        job: Requested,
        stop: threading.Event,
        report: Callable[[Progress], None],
        clock: Clock | None = None,
        *,
        resumes: bool = True,
    ) -> None:
        """Do nothing yet.

        Args:
            settings: of the cluster, the tables and the limits.
            job: what is asked for.
            stop: set to pause the job.
            report: called when the job begins by a snapshot, and after each chunk.
            clock: for waits.
            resumes: whether a paused job continues; otherwise it stays paused until an event resumes it.
        """
        clock, client = clock or SystemClock(), admin(settings.kafka)
        self._task = Task(
            settings,
            with_approval(settings.redrive, job),
            client,
            Classifier(settings, job, client),
            OutcomeCheck(settings, job, client, clock, stop.wait),
            stop,
            clock,
        )
        self._report = report
        self._backoff = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S, random.random)
        self._rate_limit = RateLimit(clock.monotonic())
        self._refusals = Refusals()
        self._resumes = resumes

    def run(self) -> Progress:
        """Run the job to its end; an outage of Kafka or Postgres is waited out.

        Raises:
            FencedError: an executor of this group, perhaps of another job, has begun after this one.
            ConfigurationError: fix what the message says.
        """
        outage = (TransientError, psycopg.OperationalError, psycopg.InterfaceError)
        try:
            return through_outage(self._to_end, self._pause_s, self._task.stop.wait, outage)
        except FencedError as error:
            job = self._task.job
            raise FencedError(
                f"{error} A job of group {job.group} was begun or resumed elsewhere, which ends the executor of any "
                f"other one. If job {job.job} isn't ended, resume it: waitreg dlq redrive --resume {job.job} --send"
            ) from error

    def _pause_s(self, error: Exception) -> float | None:
        if self._task.stop.is_set():
            return None
        pause_s = self._backoff.next_s()
        log.warning("the job waits for %.1f s: %s", pause_s, error)
        return pause_s

    def _to_end(self) -> Progress:
        while (ended := self._from_fence()) is None:
            pass  # the broker refused a chunk, which uses its fence up
        return ended

    def _from_fence(self) -> Progress | None:
        """Work on the job from a new fence on; None if only another one continues."""
        with ExitStack() as held:
            fenced = fence(self._task, held)
            while True:
                with ExitStack() as held_by_snapshot:
                    found = self._by_snapshot(fenced.snapshot(held_by_snapshot))
                if found is not Restart.SNAPSHOT:
                    return found if isinstance(found, Progress) else None

    def _by_snapshot(self, snapshot: Snapshot) -> Progress | Restart:
        """Work on the job by one snapshot, until the job ends or the snapshot is too old."""
        selection = snapshot.begin(self._resumes)
        # An operator who pauses it from now on means this executor, whatever makes it begin again at the fence.
        self._resumes = False
        if isinstance(selection, Progress):
            return selection
        self._report(snapshot.marks.progress)
        clock = self._task.clock
        while True:
            chunk = selection.chunk(self._refusals)
            if not isinstance(chunk, Chunk):
                return chunk
            written = chunk.write()
            if isinstance(written, Refusals):
                self._refusals = written
                return Restart.FENCE
            self._refusals = written.refusals
            self._backoff.reset()
            self._report(written.progress)
            rate = self._task.rate(written.progress)
            self._task.stop.wait(self._rate_limit.pause_s(written.done, rate, clock.monotonic(), written.is_last))
            if clock.monotonic() >= snapshot.until_s:
                return Restart.SNAPSHOT
