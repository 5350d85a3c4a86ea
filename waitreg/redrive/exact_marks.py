"""The exact marks of a moment: those of the tables, and those that the operations topic has beyond them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from wait_registry.clock import Clock
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.tail_reader import LogPartition, TailReader
from wait_registry.settings.tree import Settings
from waitreg.redrive.job_decision import Candidate, Standing
from waitreg.redrive.operations_tail import OperationsTail
from waitreg.redrive.progress import Progress
from waitreg.redrive.snapshot import TableSnapshot


def operations_log(settings: Settings) -> LogPartition:
    """Return what the tail of the operations topic is read from."""
    topic, timeout_s = settings.operations.topic, settings.redrive.tail_timeout_s
    return LogPartition(settings.kafka, topic, 0, timeout_s, f"waitreg.redrive.{topic}")


def require_same_operations_topic(tables: TableSnapshot, client: Admin, settings: Settings) -> None:
    """Raise ConfigurationError if the tables were made from another operations topic of this name."""
    now = describe_topic(client, settings.operations.topic)
    if now.topic_id != tables.topic_id:
        raise ConfigurationError(
            f"the tables were made from the operations topic with the ID {tables.topic_id}, {now.topic} has the ID "
            f"{now.topic_id}: it was recreated, and its marks are gone. Set operations.topic to a new name"
        )


class ExactMarks:
    """The marks up to the end of the operations topic at the last reading, and how far one job has come."""

    def __init__(self, tables: TableSnapshot, tail: OperationsTail, reader: TailReader) -> None:
        """Made by `exact_marks`; ``reader`` reads for the tail."""
        self.tables = tables
        self.tail = tail
        self._reader = reader

    def read_on(self) -> None:
        """Read the operations topic on to its end; errors as `TailReader.read_on`."""
        self._reader.read_on()

    def standing(self, candidate: Candidate) -> Standing:
        """Return what the marks say of a dead letter."""
        place, record, time_ms = candidate.marked_place, candidate.record, candidate.record_time_ms
        return self.tail.standing(place, candidate.wait_id, record, candidate.standing, time_ms)

    @property
    def progress(self) -> Progress:
        """Return how far the job has come that was asked for."""
        assert self.tail.progress is not None
        return self.tail.progress


@contextmanager
def exact_marks(settings: Settings, client: Admin, clock: Clock, job: str = "") -> Iterator[ExactMarks]:
    """Take the snapshot of the tables, and read the operations topic from there to its end.

    Args:
        settings: of the cluster, the tables and the limits.
        client: of the cluster.
        clock: for deadlines.
        job: whose progress is of interest.

    Raises:
        ConfigurationError: the tables were made from another operations topic, or from none.
        TransientError, psycopg.Error: Kafka or Postgres is unavailable; retry.
    """
    with closing(TableSnapshot(settings)) as tables:
        require_same_operations_topic(tables, client, settings)
        tail = OperationsTail(tables.start, job, settings.redrive.max_tail_records, tables.job(job))
        with closing(TailReader(operations_log(settings), client, clock, tail)) as reader:
            reader.read_on()
            yield ExactMarks(tables, tail, reader)
