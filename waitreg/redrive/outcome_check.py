"""Holds a job between two chunks: after its canary, and if too many of its records come back as dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from wait_registry.clock import Clock
from wait_registry.dead_letters.outcome import PROCEED, Outcome, Verdict, after_canary, after_comebacks
from wait_registry.dead_letters.outcome_reader import OutcomeReader
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import topic_names
from wait_registry.postgres.connection import connect_pooled
from wait_registry.records.operation import Kind, Requested
from wait_registry.records.topics import retry_delay_s
from wait_registry.settings.tree import Settings
from waitreg.redrive.progress import Progress

# The pause after a check, s; after a slow one, this multiple of what it took.
CHECK_S: Final = 1.0
_PAUSE_PER_CHECK: Final = 10


class OutcomeCheck:
    """Checks what became of one job's records."""

    def __init__(
        self, settings: Settings, job: Requested, client: Admin, clock: Clock, pause: Callable[[float], object]
    ) -> None:
        """Check nothing yet.

        Args:
            settings: of the cluster, the tables and the limits.
            job: whose records.
            client: asked which retry topics there are.
            clock: for what is waited.
            pause: waits, s.
        """
        self._settings = settings
        self._job = job
        self._client = client
        self._clock = clock
        self._pause = pause
        self._check_at = clock.monotonic()
        # The canary: since when it is out, since when all of it is settled, and whether the job may continue.
        self._out_at: float | None = None
        self._settled_at: float | None = None
        self._passed = False

    def canary_left(self, progress: Progress) -> int | None:
        """Return how many records may be sent before the job waits for its canary; None if it need not wait."""
        size = self._job.canary
        return None if size is None or self._passed or progress.sent > size else size - progress.sent

    def check(self, progress: Progress) -> Verdict:
        """Decide whether the job sends its next chunk.

        Raises:
            ConfigurationError: Kafka refuses us.
            TransientError, psycopg.Error: Kafka or Postgres is unavailable; retry.
        """
        if self._job.kind is not Kind.REDRIVE:
            return PROCEED
        is_out = self.canary_left(progress) == 0
        began = self._clock.monotonic()
        if not is_out and began < self._check_at:
            return PROCEED
        with connect_pooled(self._settings.postgres, application_name="waitreg redrive") as connection:
            reader = OutcomeReader(self._settings, connection, self._clock, self._pause)
            verdict = self._after_canary(reader, progress) if is_out else self._after_comebacks(reader, progress)
        ended = self._clock.monotonic()
        self._check_at = ended + max(CHECK_S, _PAUSE_PER_CHECK * (ended - began))
        return verdict

    def _after_comebacks(self, reader: OutcomeReader, progress: Progress) -> Verdict:
        numbers = reader.comebacks(self._job.job, self._job.group, progress.counted_from)
        return after_comebacks(numbers, self._settings.redrive.pause_above)

    def _after_canary(self, reader: OutcomeReader, progress: Progress) -> Verdict:
        counts = reader.of(self._job.job, progress.counted_from)
        # The tables don't have all marks yet.
        counts[Outcome.UNKNOWN] += progress.sent - counts.total()
        now = self._clock.monotonic()
        self._out_at = now if self._out_at is None else self._out_at
        if not _is_settled(counts):
            self._settled_at = None
        elif self._settled_at is None:
            self._settled_at = now
        group = self._job.group
        waited_s = retries_s(topic_names(self._client), reader.inputs(self._job.job, group), group)
        settled_s = None if self._settled_at is None else now - self._settled_at
        verdict = after_canary(counts, now - self._out_at, settled_s, waited_s, self._settings.redrive)
        self._passed = verdict.proceeds
        return verdict


def retries_s(names: Iterable[str], inputs: Iterable[str], group: str) -> int:
    """Return for how long a record may be in retry topics: the sum of the delays of those that there are, s.

    Args:
        names: of all topics.
        inputs: the input topics of the records; the longest sum counts.
        group: the consumer group.
    """
    delays = [[retry_delay_s(name, topic, group) or 0 for name in names] for topic in inputs]
    return max(map(sum, delays), default=0)


def _is_settled(counts: Counter[Outcome]) -> bool:
    return counts[Outcome.DEAD_AGAIN] + counts[Outcome.SETTLED] == counts.total()
