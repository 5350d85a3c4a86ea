"""P4, P6: batches of any size, repeated or interrupted, leave in Postgres what reading record by record leaves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sink.apply.staging import FREEZE_EVERY_S
from sink.position import PositionExpired, TopicPartition
from tests.conftest import SettingsFactory
from tests.integration.sink.applying import PARTITIONS, HandFed, row_of
from tests.integration.sink.wait_topic import ENCODER, new_id, rows_of, tombstone, wait_record
from tests.support.database import Database
from tests.unit.sink.batches import Row
from wait_registry.errors import FencedError
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.settings.tree import Settings

IDS = 5
BASE_MS = 1_800_000_000_000
EXPIRES_MS = BASE_MS + 50
DAY_MS = 86_400_000

# (which ID, what happens); a wait, or a tombstone by a processor or by the sweeper.
events = st.lists(
    st.tuples(st.integers(0, IDS - 1), st.sampled_from(["wait", "wait", "done", "expired"])), min_size=1, max_size=60
)
cuts = st.lists(st.integers(1, 15), min_size=1, max_size=60)

# The staged tables and those that hold their long values; age counts in transaction IDs.
OLDER_THAN = """
with staged as (select oid, reltoastrelid from pg_class where relnamespace = pg_my_temp_schema() and relkind = 'r')
select count(*), count(*) filter (where age(relfrozenxid) > age(%s::xid))
from pg_class
where oid in (select oid from staged union all select reltoastrelid from staged)
"""


@dataclass
class Model:
    """The open registrations and the late outcomes, record by record."""

    open: dict[str, int] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)

    def read(self, row: Row, outcome: str) -> None:
        assert row.key is not None
        wait_id = row.key.decode()
        if row.value is not None:
            self.open[wait_id] = row.offset
        elif wait_id not in self.open or (outcome == "done" and row.time_ms > EXPIRES_MS):
            self.late.add(row.offset)
        if row.value is None:
            self.open.pop(wait_id, None)


def records_of(history: list[tuple[int, str]], topic: str = "wait") -> tuple[list[Row], Model]:
    """Return the records of a history; offsets rise over all partitions together, so that one names a record."""
    rows, model, ids = [], Model(), [new_id() for _ in range(IDS)]
    for offset, (number, kind) in enumerate(history):
        if kind == "wait":
            original = Original("orders", 0, offset, 1, "create", b"k", b"body", ())
            value, headers = b"body", tuple(ENCODER.headers(original, ids[number], EXPIRES_MS))
        else:
            value, headers = None, tuple(tombstone_headers(Outcome(kind)))
        row = Row(ids[number].encode(), value, number % PARTITIONS, offset, BASE_MS + 2 * offset, headers, topic)
        model.read(row, kind)
        rows.append(row)
    return rows, model


@pytest.fixture
def ours(prepared: SettingsFactory) -> Settings:
    return prepared()


@pytest.fixture
def sink(ours: Settings) -> Iterator[HandFed]:
    with closing(HandFed(ours)) as sink:
        yield sink


def contents(database: Database, ours: Any) -> list[list[tuple[Any, ...]]]:
    tables = ("wait", "sink_progress", "quarantine", "late_outcome", "dead_letter")
    return [database.rows(ours, f"select * from {table} order by 1, 2, 3") for table in tables]


@pytest.mark.guarantee("P6.3")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=events, sizes=cuts)
def test_tables_are_those_of_reading_record_by_record(
    settings_for: SettingsFactory, database: Database, history: list[tuple[int, str]], sizes: list[int]
) -> None:
    ours = settings_for()
    database.install(ours)  # the examples share one schema, each has a topic of its own
    topic = f"wait-{new_id()}"
    rows, model = records_of(history, topic)
    with closing(HandFed(ours, topic)) as sink:
        begin = 0
        for size in sizes:
            sink.feed(rows[begin : begin + size][::-1])
            begin += size
        sink.feed(rows[begin:])
        found = sink.connection.execute(
            "select wait_expiration_uuid, wait_offset from wait where wait_topic = %s", (topic,)
        ).fetchall()
        late = sink.connection.execute("select wait_offset from late_outcome where wait_topic = %s", (topic,))
        assert dict(found) == model.open
        assert {offset for (offset,) in late} == model.late


@pytest.mark.guarantee("P4.12")
@pytest.mark.fault("F59")
def test_a_sink_whose_position_another_moved_changes_nothing(ours: Settings, sink: HandFed, database: Database) -> None:
    with closing(HandFed(ours)) as zombie:
        wait, _ = records_of([(0, "wait"), (1, "wait")])
        sink.feed(wait)
        before = contents(database, ours)
        stale = [replace(wait[0], offset=5), Row(b"bad key", b"v", 1, 6, topic="wait"), replace(wait[1], value=None)]
        with pytest.raises(FencedError, match="another sink is alive"):
            zombie.feed(stale)
        with pytest.raises(FencedError):
            zombie.applier.refresh()
        assert contents(database, ours) == before
        assert zombie.applier.positions[TopicPartition("wait", 0)].next_offset == 0


@pytest.mark.guarantee("P6.2")
def test_a_batch_is_written_with_its_position_or_not_at_all(ours: Settings, sink: HandFed, database: Database) -> None:
    before = contents(database, ours)
    rows, _ = records_of([(0, "wait"), (0, "done"), (1, "wait")])
    with database.connect(ours) as other:
        other.execute("alter table wait rename column tracestate to elsewhere")
        with pytest.raises(psycopg.Error, match="tracestate"):
            sink.feed(rows)
        other.execute("alter table wait rename column elsewhere to tracestate")
    assert contents(database, ours) == before
    sink.feed(rows)
    assert database.rows(ours, "select count(*) from wait") == [(1,)]


@pytest.mark.guarantee("P6.4")
@pytest.mark.fault("F57")
def test_older_records_read_again_touch_no_newer_registration(ours: Settings, database: Database) -> None:
    renewed, again = new_id(), new_id()
    records = [wait_record(renewed, 0), wait_record(again, 0), tombstone(again, 0)]
    records += [wait_record(renewed, 0), wait_record(again, 0)]
    expected = {renewed: (0, 3), again: (0, 4)}
    with closing(HandFed(ours)) as sink:
        for offset, record in enumerate(records):
            sink.feed([row_of(record, offset)])
        assert rows_of(database, ours) == expected
        sink.connection.execute("update sink_progress set next_offset = 0")
    with closing(HandFed(ours)) as sink:
        for offset, record in enumerate(records):
            sink.feed([row_of(record, offset)])
            assert rows_of(database, ours) == expected


@pytest.mark.guarantee("P6.6")
def test_no_batch_follows_a_position_older_than_half_of_the_retention(ours: Settings, database: Database) -> None:
    with closing(HandFed(ours)) as young:
        young.feed([Row(b"unreadable", b"v", 0, 1)])
        young.connection.execute("update sink_progress set position_time = now() - interval '13 hours'")
    with closing(HandFed(ours, retention_ms=DAY_MS)) as old:
        with pytest.raises(PositionExpired, match="waitreg rebuild"):
            old.feed([Row(b"unreadable", b"v", 0, 2)])
        with pytest.raises(PositionExpired):
            old.applier.refresh()
    assert database.rows(ours, 'select "offset" from quarantine') == [(1,)]
    assert database.rows(ours, "select max(next_offset) from sink_progress") == [(2,)]


@pytest.mark.guarantee("P6.9")
def test_staged_tables_are_frozen_every_hour_between_batches(ours: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr("sink.apply.staging.monotonic", lambda: now_s[0])
    with closing(HandFed(ours)) as sink:
        for hour in range(8):  # more often than a statement is run before the driver prepares it
            sink.feed([Row(b"unreadable", bytes(10_000), 0, hour)])
            [(now,)] = sink.connection.execute("select pg_current_xact_id()::xid::text").fetchall()
            for older in (6, 0):  # three tables with their toast tables, half an hour later and an hour later
                now_s[0] += FREEZE_EVERY_S / 2
                sink.applier.refresh()
                assert sink.connection.execute(OLDER_THAN, (now,)).fetchone() == (6, older)
