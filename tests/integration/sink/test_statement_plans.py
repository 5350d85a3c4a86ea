"""What runs with every batch finds its rows by an index, however many rows there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from sink.apply.applier import Writer
from sink.apply.dead_letter_writer import DeadLetterWriter
from sink.apply.wait_writer import WaitWriter
from sink.progress import QUERIES, Connection
from tests.conftest import SettingsFactory
from tests.integration.queries.plan import nodes_of
from tests.integration.sink.wait_topic import new_id
from tests.support.database import Database
from tests.unit.sink.batches import Row, batch_of

ROWS = 200_000

FILL = f"""
    insert into wait (
        wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, wait_offset)
    select md5(i::text)::uuid::text, 'orders', now(), 'wait', i % 8, i from generate_series(1, {ROWS}) as i;
    insert into dead_letter (topic, partition, "offset", reason, wait_expiration_uuid)
    select 'dlq', 0, i, case when i % 2 = 0 then 'expired' else 'failed' end, md5(i::text)::uuid::text
    from generate_series(1, {ROWS}) as i;
    insert into late_outcome (wait_expiration_uuid, outcome, wait_topic, wait_partition, wait_offset)
    select md5(i::text)::uuid::text, 'done', 'wait', 0, i from generate_series(1, {ROWS}) as i;
    analyze wait; analyze dead_letter; analyze late_outcome;
    insert into staged_tombstone
    select md5(i::text)::uuid::text, i % 8, i + 1, i + 1, now(), 'done', true, true, null
    from generate_series(1, 100) as i;
    insert into staged_dead_letter (topic, partition, "offset", reason, wait_expiration_uuid)
    select 'dlq', 0, i, 'expired', md5(i::text)::uuid::text from generate_series(1, 100) as i;
    insert into staged_wait select * from wait where wait_offset <= 100;
    analyze staged_tombstone; analyze staged_dead_letter; analyze staged_wait;
"""


# As in a batch of a busy sink: nearly all tombstones are of registrations that never became rows. Nor has an outage's
# dead letter another of its id.
ABSENT = """
    insert into staged_tombstone
    select md5('absent ' || i)::uuid::text, i % 8, i + 1, i + 1, now(), 'done', false, i % 10 > 0, null
    from generate_series(1, 60000) as i;
    insert into staged_dead_letter (topic, partition, "offset", reason, wait_expiration_uuid)
    select 'dlq', 1, i, case when i % 2 = 0 then 'expired' else 'failed' end, md5('absent ' || i)::uuid::text
    from generate_series(1, 60000) as i;
    insert into staged_wait (
        wait_expiration_uuid, original_topic, wait_expiration_time, wait_topic, wait_partition, wait_offset)
    select md5('absent ' || i)::uuid::text, 'orders', now(), 'wait', i % 8, i from generate_series(1, 60000) as i;
    analyze staged_tombstone; analyze staged_dead_letter; analyze staged_wait;
"""

MARKS = """
    insert into dead_letter_mark (
        "offset", job, kind, state, wait_expiration_uuid, number, consumer_group, dead_letters,
        marked_at, marked_by)
    select i, 'job', 'redrive', 'redriven', md5(i::text)::uuid::text, 1, 'shop', array['dlq:0:' || i], now(), 'anna'
    from generate_series(1, 1000) as i;
    analyze dead_letter_mark;
"""

LARGE = {"wait", "dead_letter", "late_outcome"}
WRITES = ("upsert_waits", "upsert_dead_letters")
LOOKS = ("settle", "mark_by_tombstones", "mark_by_dead_letters")


def is_whole(scan: dict[str, Any]) -> bool:
    """Return whether a node reads its table, or an index of it, from beginning to end."""
    kind = scan["Node Type"]
    return kind == "Seq Scan" or (kind in {"Index Scan", "Index Only Scan"} and "Index Cond" not in scan)


def read_whole(connection: Connection, statements: Sequence[str]) -> dict[str, set[str]]:
    """Return what statements read from beginning to end; others are skipped."""
    read = {name: {scan["Relation Name"] for scan in plan(connection, name) if is_whole(scan)} for name in statements}
    return {name: tables & LARGE for name, tables in read.items() if tables & LARGE}


def plan(connection: Connection, name: str) -> Iterator[dict[str, Any]]:
    """Return how Postgres would do a statement."""
    used = {"topic": "wait", "partitions": [0, 1], "whole_from": [0, 7]} if "%(topic)s" in QUERIES[name] else None
    [[document]] = connection.execute(b"explain (format json) " + QUERIES[name].encode(), used).fetchall()
    return nodes_of(document[0]["Plan"])


@pytest.mark.parametrize("absent", ["", ABSENT], ids=["few", "many-absent"])
def test_no_statement_of_a_batch_reads_whole_tables(prepared: SettingsFactory, database: Database, absent: str) -> None:
    with database.connect(prepared()) as connection, connection.transaction():
        connection.execute(QUERIES["stage"])
        connection.execute((FILL + absent).encode())
        assert not read_whole(connection, WRITES)
        connection.execute(QUERIES["prefer_probes"])
        assert not read_whole(connection, LOOKS)


@pytest.mark.guarantee("P7.8")
@pytest.mark.parametrize(
    ("writer", "row"),
    [
        (WaitWriter("wait"), Row(new_id().encode(), None, 9, 1)),
        (DeadLetterWriter(), Row(b"key", b"body", 9, 1, topic="dlq")),
    ],
    ids=["wait", "dead letter"],
)
def test_nor_is_a_small_table_read_whole_for_each_row(
    prepared: SettingsFactory, database: Database, writer: Writer, row: Row
) -> None:
    with database.connect(prepared()) as connection, connection.transaction():
        connection.execute(QUERIES["stage"])
        writer.write(connection, batch_of([row]), {})
        connection.execute((FILL.replace(str(ROWS), "150") + ABSENT).encode())
        assert not read_whole(connection, LOOKS)


def test_states_of_others_dead_letters_are_found_by_their_marks(prepared: SettingsFactory, database: Database) -> None:
    with database.connect(prepared()) as connection, connection.transaction():
        connection.execute(QUERIES["stage"])
        connection.execute(FILL.encode())
        connection.execute(MARKS.encode())
        connection.execute(QUERIES["prefer_probes"])
        assert not read_whole(connection, ["show_marks_of_others"])
