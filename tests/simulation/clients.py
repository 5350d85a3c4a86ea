"""The clients of Kafka and Spark that sink and sweeper get in the small worlds: each request is an effect."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, ClassVar, Final

import pyarrow as pa
from confluent_kafka.admin import OffsetSpec
from pytest import MonkeyPatch

from sink.apply.wait_writer import WaitWriter
from sink.condense.condensed import Condensed
from sink.read.record_columns import KEY, OFFSET, VALUE
from sweeper.result import Skip
from sweeper.sweep_task import sweep_partition
from sweeper.tables_policy import Scope
from sweeper.wait_topic import WaitTopic
from tests.simulation import redrive_clients
from tests.simulation.kafka_clients import Consumer, Producer
from tests.simulation.postgres import Connection, SnapshotConnection
from tests.simulation.replay import ask
from tests.simulation.wait_log import IDENTITY, NAME, ORIGINAL, RETENTION_MS, WAIT, WAIT_IDS, Records, moment
from tests.unit.sink.batches import Row, batch_of
from wait_registry.kafka.targets import Target
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_record import ExpiryRule, WaitRecordEncoder
from wait_registry.settings.tree import Settings

SETTINGS: Final = Settings().model_copy(
    update={
        # Rebuilds read offset by offset, chunks have one row.
        "sink": Settings().sink.model_copy(update={"max_batch_records": 1}),
        "sweeper": Settings().sweeper.model_copy(update={"chunk_rows": 1}),
    }
)
TOPIC: Final = WaitTopic(IDENTITY, RETENTION_MS)
# What follows at once in a sweep: a listing is one moment, and what a poll brings is judged with its end.
SWEEP_URGENT: Final = (
    ("clock", "end"),
    ("end", "clock"),
    ("end", "poll"),
    ("poll", "clock"),
    ("write", "commit"),
)
_ENCODER: Final = WaitRecordEncoder("group", "instance", "orders.dlq", ExpiryRule("dlq", 3))


@lru_cache(None)
def table_of(records: Records) -> pa.Table:
    """Return records as Spark gives them to the sink; the same records are the same table."""
    return batch_of([_row(*record) for record in records])


def _row(at: int, kind: int, wait_id: int, appended: int) -> Row:
    key, time_ms = WAIT_IDS[wait_id], int(moment(appended).timestamp() * 1000)
    if kind == WAIT:
        value, headers = b"", _ENCODER.headers(ORIGINAL, key, 0)
    else:
        value, headers = None, tombstone_headers(Outcome.DONE)
    return Row(key.encode(), value, NAME.partition, at, time_ms, tuple(headers), NAME.topic)


class StagesOnce(WaitWriter):
    """Compacts and decodes each batch once for each world, which takes most of the time."""

    known: ClassVar[dict[tuple[Any, ...], tuple[dict[str, list[tuple[int, int]]], Condensed]]] = {}

    def stage(self, connection: Any, batch: Any) -> Condensed:
        key = tuple(tuple(batch[name].to_pylist()) for name in (KEY, VALUE, OFFSET))
        if key not in self.known:
            staged = super().stage(connection, batch)
            self.known[key] = {name: list(rows) for name, rows in connection.staged.items()}, staged
        copied, staged = self.known[key]
        for name, rows in copied.items():
            connection.staged[name][:] = rows
        return staged


class Spark:
    """A session whose Kafka source reads one range."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(setJobGroup=lambda *_: None)
        self._options: dict[str, str] = {}

    @property
    def read(self) -> Spark:
        return self

    def format(self, _: str) -> Spark:
        return self

    def options(self, **options: str) -> Spark:
        self._options = options
        return self

    def load(self) -> Spark:
        return self

    def selectExpr(self, *_: str) -> Spark:
        return self

    def table(self) -> pa.Table:
        begin, end = (json.loads(self._options[name])[NAME.topic]["0"] for name in ("startingOffsets", "endingOffsets"))
        return table_of(ask("read", begin, end, self._options["kafka.isolation.level"] == "read_committed"))


def _listed(_: Any, topic: str, partitions: Iterable[int], spec: OffsetSpec, isolation: str) -> dict[int, Any]:
    offset = 0 if spec is OffsetSpec.earliest() else ask("end", isolation == "read_committed")
    return {NAME.partition: SimpleNamespace(offset=offset)}


def install(patch: MonkeyPatch) -> None:
    """Give the product these clients; remove safeguards after that."""
    patch.setattr("wait_registry.kafka.positions._ask", _listed)
    patch.setattr("sink.read.kafka_reader.to_arrow", lambda frame, _: frame.table())
    patch.setattr("sink.read.start_positions.describe_wait_topic", lambda *_: IDENTITY)
    patch.setattr("sink.rebuild.tables.describe_wait_topic", lambda *_: IDENTITY)
    patch.setattr("sink.rebuild.tables.open_admin", lambda _: None)
    patch.setattr("sink.rebuild.tables.connect", lambda *_, **named: Connection())
    patch.setattr("sink.rebuild.tables.try_lock", lambda *_: True)
    # No operations topic is in this world.
    patch.setattr("sink.rebuild.tables.rebuild_operations", lambda *_: None)
    for check in ("lift_time_limits", "require_schema", "require_topics", "require_no_second_sink"):
        patch.setattr(f"sink.rebuild.tables.{check}", lambda *_: None)
    patch.setattr("sink.rebuild.replacement.delete_retention_ms", lambda *_: RETENTION_MS)
    patch.setattr("sink.rebuild.replacement.WaitWriter", StagesOnce)
    patch.setattr("sweeper.export.admin", lambda _: None)
    patch.setattr("sweeper.export.Targets", lambda _: lambda topic: Target(topic, 1, 1_000_000))
    redrive_clients.install(patch)
    patch.setattr("wait_registry.kafka.fenced_producer.Producer", Producer)
    patch.setattr("wait_registry.kafka.tail_reader.Consumer", Consumer)
    patch.setattr("sweeper.snapshot.connect", lambda *_, **named: SnapshotConnection())


def sweep() -> None:
    """Sweep the partition, as a task of Spark does."""
    result = sweep_partition(Scope(SETTINGS, TOPIC), NAME.partition)
    assert result.skip is not Skip.FAILED, result.reason
