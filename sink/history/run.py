"""One run of the history: reads the wait topic from where the last run ended, and writes what was settled since."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from sink.history.directory import HistoryDirectory, Progress, require_same_topic
from sink.history.settled import ROWS, columns, entries, settle
from sink.position import TopicPartition
from sink.read.batch_reader import BatchReader
from sink.read.kafka_reader import SparkReader
from sink.read.log_ends import Log, read_log, stable_ends
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.clients import admin as open_admin
from wait_registry.kafka.wait_topic import describe_wait_topic, require_same_wait_topic
from wait_registry.settings.tree import Settings
from wait_registry.spark.session import session_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

# What is held of rows before a part is written: the fewer parts, the fewer files.
HELD_ROWS: Final = 500_000
HELD_BYTES: Final = 134_217_728


@dataclass(frozen=True, slots=True)
class HistoryResult:
    """What a run added: rows, those of them without a registration, and files; and what is open in the end."""

    rows: int
    without_registration: int
    files: int
    open: int


def run_history(
    settings: Settings,
    path: Path,
    spark: SparkSession | None = None,
    *,
    with_keys: bool = True,
    held_rows: int = HELD_ROWS,
) -> HistoryResult:
    """Add to the history what was settled since the last run, up to the end of the wait topic as it is now.

    Args:
        settings: of the sink; Postgres is not needed.
        path: folder of the history.
        spark: a session to share, one of its own when None.
        with_keys: keep the keys of the original records.
        held_rows: how many rows are held before a part is written.

    Returns:
        What was added. A run that is repeated adds nothing twice.

    Raises:
        ConfigurationError: the topic isn't the one of the folder, or has lost records; fix what the message says.
        FencedError: another run writes to the folder.
        TransientError: Kafka can't be reached now, or Spark could not read; run it again.
        SparkGone: Spark's JVM has ended, or its scratch folders were removed; run it again.
    """
    admin = open_admin(settings.kafka)
    identity = describe_wait_topic(admin, settings.wait.topic, settings.wait.partitions)
    directory = HistoryDirectory(path)
    with directory.locked():
        seen = read_log(admin, identity)
        last = directory.progress()
        if last is None:
            first = {name.partition: offset for name, offset in seen.first.items()}
            last = directory.begin(identity.topic, identity.topic_id, first)
        require_same_topic(last, identity)
        with session_of(settings, "waitreg-history", spark) as session:
            reader = SparkReader(session, settings.kafka, columns(with_keys=with_keys))
            return _Run(settings, admin, directory, last, seen, reader).run(held_rows)


class _Run:
    """Reads to the end that the log had at the start, and commits each time that enough is held."""

    def __init__(
        self,
        settings: Settings,
        admin: Admin,
        directory: HistoryDirectory,
        last: Progress,
        seen: Log,
        reader: SparkReader,
    ) -> None:
        self._directory = directory
        self._identity = seen.identity
        self._require_same = partial(require_same_wait_topic, admin, seen.identity)
        self._reader = BatchReader(reader, settings.sink, settings.wait.max_message_bytes)
        self._part = last.part
        self._positions = _start(last, seen)
        self._ends = stable_ends(admin, self._positions)
        self._open = last.opened
        self._held = ROWS.empty_table()
        self._rows = self._unmatched = self._files = 0

    def run(self, held_rows: int) -> HistoryResult:
        """Read and commit; arguments, result and errors as `run_history`."""
        read_to = dict(self._positions)
        while (batch := self._reader.read(read_to, self._ends)) is not None:
            settled = settle(self._open, entries(batch.records))
            self._open = settled.open.combine_chunks()
            self._held = pa.concat_tables([self._held, settled.rows])
            read_to.update(batch.next_positions)
            if self._held.num_rows >= held_rows or self._held.nbytes >= HELD_BYTES:
                self._commit(read_to)
        if read_to != self._positions:
            self._commit(read_to)
        return HistoryResult(self._rows, self._unmatched, self._files, self._open.num_rows)

    def _commit(self, read_to: dict[TopicPartition, int]) -> None:
        # The topic may have been recreated since the last look: then what was read is another one's.
        self._require_same()
        self._part += 1
        positions = {name.partition: offset for name, offset in read_to.items()}
        progress = Progress(self._part, self._identity.topic, self._identity.topic_id, positions, self._open)
        self._files += self._directory.commit(progress, self._held)
        self._rows += self._held.num_rows
        self._unmatched += self._held["registered_at"].null_count
        log.info("part %d: %d rows up to %s", self._part, self._held.num_rows, positions)
        self._positions, self._held = dict(read_to), ROWS.empty_table()


def _start(last: Progress, seen: Log) -> dict[TopicPartition, int]:
    """Return where each partition is read from: its first offset if it is new."""
    start = {name: last.positions.get(name.partition, first) for name, first in seen.first.items()}
    for name, offset in start.items():
        if not seen.first[name] <= offset <= seen.ends[name]:
            raise ConfigurationError(
                f"{name} has the offsets {seen.first[name]} to {seen.ends[name]}, and the history goes up to {offset}: "
                "the log has lost records, or the folder is another cluster's. Start a history in another folder"
            )
    return start
