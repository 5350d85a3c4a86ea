"""The rows of ``sink_progress``: position, idempotence guard and fence of the sink at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg.rows import TupleRow

from sink.position import Position, Positions, TopicPartition
from wait_registry.errors import FencedError
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.postgres.queries import Queries

QUERIES = Queries("sink")

Connection = psycopg.Connection[TupleRow]


@dataclass(frozen=True, slots=True)
class Written:
    """Counts of one committed batch; ``marked`` are expired dead letters found to have finished after all."""

    table: str
    rows: int
    deleted: int
    quarantined: int
    marked: int


def postgres_now(connection: Connection) -> datetime:
    """Return Postgres' clock, the one that position times are compared with."""
    row = connection.execute(QUERIES["now"]).fetchone()
    assert row is not None  # a select without from has one row
    moment = row[0]
    assert isinstance(moment, datetime)
    return moment


def read_progress(connection: Connection, topic: str) -> tuple[TopicIdentity | None, dict[TopicPartition, Position]]:
    """Return the topic as it was when the sink first saw it (None: never) and the recorded positions."""
    rows = connection.execute(QUERIES["read_progress"], {"topic": topic}).fetchall()
    if not rows:
        return None, {}
    positions = {TopicPartition(topic, partition): Position(*place) for partition, _, *place in rows}
    return TopicIdentity(topic, rows[0][1], len(rows)), positions


def begin_progress(connection: Connection, identity: TopicIdentity, positions: Positions) -> None:
    """Record the first positions of a topic's partitions; those that have one keep it."""
    rows = [
        (*name, position.next_offset, position.position_time, position.read_until, identity.topic_id)
        for name, position in sorted(positions.items())
    ]
    # All rows at once: their number is what the sweeper compares with the partition count.
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(QUERIES["insert_progress"], rows)


def begin_operations(connection: Connection, identity: TopicIdentity, positions: Positions) -> None:
    """As `begin_progress`, of an operations topic; those of earlier ones stay, and none of them is read again."""
    with connection.transaction():
        begin_progress(connection, identity, positions)
        connection.execute(QUERIES["begin_operations"], {"topic": identity.topic})


def forget_progress(connection: Connection, topic: str) -> None:
    """Delete the positions of a topic that is gone."""
    connection.execute(QUERIES["forget_progress"], {"topic": topic})


def advance_progress(connection: Connection, expected: Positions, new: Mapping[TopicPartition, Position]) -> None:
    """Move positions by compare-and-set, within the transaction that writes what was read.

    Every position of ``new`` must still be what ``expected`` says. Raises `FencedError` if one isn't: another sink has
    moved it; roll back and stop.
    """
    names = sorted(new)
    cursor = connection.execute(
        QUERIES["advance"],
        {
            "topics": [name.topic for name in names],
            "partitions": [name.partition for name in names],
            "expected": [expected[name].next_offset for name in names],
            "next_offsets": [new[name].next_offset for name in names],
            "position_times": [new[name].position_time for name in names],
            "read_until": [new[name].read_until for name in names],
        },
    )
    if cursor.rowcount != len(names):
        raise FencedError(
            f"another sink is alive: of {len(names)} positions only {cursor.rowcount} are where this sink left them. "
            "Nothing was written. Run one sink per wait topic and schema; a second one waits as a standby by itself"
        )
