"""Check whether the tables have what the operations topic has: without that, a redrive refuses to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.postgres.queries import Queries
from wait_registry.settings.root import Settings
from waitreg.doctor.postgres_server import read_only_connection

FIX: Final = "start `waitreg sink`, also alongside a Kafka Connect sink, or set operations.topic"
REBUILD: Final = "run `waitreg rebuild`, once the topic is the right one"
_SQL: Final = Queries("redrive")


def position(settings: Settings) -> Iterator[Diagnosis]:
    """Compare the position of the tables with the operations topic: the same topic, within its log, not far behind."""
    topic, client = settings.operations.topic, admin(settings.kafka)
    identity = describe_topic(client, topic)
    with read_only_connection(settings) as connection:
        row = connection.execute(_SQL["position"], {"topic": topic}).fetchone()
    if row is None:
        yield warning(f"no sink has read {topic} yet: `waitreg dlq redrive` refuses to start", FIX)
        return
    if row[3] is not None:
        fix = f"set operations.topic to {row[3]}"
        yield error(f"{topic} was replaced by {row[3]}: `waitreg dlq redrive` refuses to start", fix)
        return
    first, end = earliest_offsets(client, topic, [0])[0], end_offsets(client, topic, [0], "read_uncommitted")[0]
    yield position_line(settings, row[0] == identity.topic_id, int(row[1]), (first, end))


def position_line(settings: Settings, same: bool, position: int, log: tuple[int, int]) -> Diagnosis:
    """Judge a position.

    Args:
        settings: name the topic and the longest tail.
        same: whether the topic is the recorded one.
        position: the next offset to be read.
        log: the first offset and the end.
    """
    topic, most = settings.operations.topic, settings.redrive.max_tail_records
    if not same:
        return error(
            f"{topic} was recreated, and its marks are only in the tables", "set operations.topic to a new name"
        )
    if not log[0] <= position <= log[1]:
        return error(f"the tables are at offset {position} of {topic}, whose log holds {log[0]} to {log[1]}", REBUILD)
    seen = f"{log[1] - position} offsets behind the end of {topic}"
    if log[1] - position > most:
        return warning(f"{seen}, more than redrive.max_tail_records = {most}: redrives wait", FIX)
    return ok(seen)
