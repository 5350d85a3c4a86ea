"""What a sink and a rebuild call: the product's own code, with the clients of the small worlds."""

# ruff: noqa: SLF001 - the world keeps what the product knows
from __future__ import annotations

from typing import Any

from sink.apply.applier import Applied, Applier
from sink.apply.wait_writer import WaitWriter
from sink.position import Position
from sink.read.kafka_reader import Batch, SparkReader
from sink.read.log_ends import log_ends, stable_ends
from sink.read.range_plan import plan
from sink.rebuild.tables import rebuild
from sink.topic_sync import TopicSync
from sink.topics import WaitTopic
from tests.simulation.clients import SETTINGS, Spark, table_of
from tests.simulation.postgres import Connection
from tests.simulation.wait_log import NAME, RETENTION_MS, Records
from wait_registry.kafka.cluster import TopicIdentity

_NO_CLIENT: Any = None


class _Topic(WaitTopic):
    """The wait topic, which stays the same."""

    def __init__(self, writer: WaitWriter) -> None:
        super().__init__(SETTINGS, _NO_CLIENT)
        self.writer = writer
        self.targets = {NAME: 0}

    def require_same(self, identity: TopicIdentity) -> None:
        pass

    def delete_retention_ms(self) -> int:
        return RETENTION_MS


def start(writer: WaitWriter) -> tuple[int, Position]:
    """Start a sink; return where it reads on, and the position that it has left."""
    connection: Any = Connection()
    sync = TopicSync(_Topic(writer), _NO_CLIENT, SETTINGS.sink, connection)
    return sync._read_to[NAME], sync.refresh().positions[NAME]


def read(begin: int, most: int) -> Batch:
    """Read a range of at most so many offsets, as far as the log is stable."""
    spark: Any = Spark()
    return SparkReader(spark, SETTINGS.kafka).read(plan({NAME: begin}, stable_ends(_NO_CLIENT, [NAME]), most))


def apply(writer: WaitWriter, position: Position | None, batch: tuple[int, Records] | None) -> Applied:
    """Write a batch: its end and its records."""
    assert batch is not None
    end, found = batch
    return _applier(writer, position).apply(table_of(found), {NAME: end})


def refresh(writer: WaitWriter, position: Position | None) -> Applied:
    """Write down that an idle position is still the log's end."""
    return _applier(writer, position).refresh()


def rebuild_tables() -> None:
    """Rebuild the tables."""
    spark: Any = Spark()
    rebuild(SETTINGS, spark)


def _applier(writer: WaitWriter, position: Position | None) -> Applier:
    connection: Any = Connection()
    assert position is not None
    return Applier(
        connection,
        writer,
        {NAME: position},
        lambda: log_ends(connection, _NO_CLIENT, [NAME]),
        delete_retention_ms=RETENTION_MS,
        whole_from={},
    )
