"""P6: batches of any size, replayed at will, leave in Postgres what a reading of the log record by record leaves."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sink.position import TopicPartition
from tests.conftest import SettingsFactory
from tests.integration.sink.applying import PARTITIONS, HandFed
from tests.integration.sink.wait_topic import ENCODER, new_id
from tests.support.database import Database
from tests.unit.sink.batches import Row
from wait_registry.errors import FencedError
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers

IDS = 5
BASE_MS = 1_800_000_000_000
EXPIRES_MS = BASE_MS + 50

# (which id, what happens); a wait, or a tombstone by a processor or by the sweeper.
events = st.lists(
    st.tuples(st.integers(0, IDS - 1), st.sampled_from(["wait", "wait", "done", "expired"])), min_size=1, max_size=60
)
cuts = st.lists(st.integers(1, 15), min_size=1, max_size=60)


@dataclass
class Model:
    """The view and the late outcomes, record by record."""

    view: dict[str, int] = field(default_factory=dict)
    late: set[int] = field(default_factory=set)

    def read(self, row: Row, outcome: str) -> None:
        assert row.key is not None
        wait_id = row.key.decode()
        if row.value is not None:
            self.view[wait_id] = row.offset
        elif wait_id not in self.view or (outcome == "done" and row.time_ms > EXPIRES_MS):
            self.late.add(row.offset)
        if row.value is None:
            self.view.pop(wait_id, None)


def rows_of(history: list[tuple[int, str]], topic: str, ids: list[str], model: Model) -> list[Row]:
    rows = []
    for offset, (number, kind) in enumerate(history):
        # Offsets rise over all partitions together, so that one number names a record.
        if kind == "wait":
            original = Original("orders", 0, offset, 1, "create", b"k", b"body", ())
            value, headers = b"body", tuple(ENCODER.headers(original, ids[number], EXPIRES_MS))
        else:
            value, headers = None, tuple(tombstone_headers(Outcome(kind)))
        row = Row(ids[number].encode(), value, number % PARTITIONS, offset, BASE_MS + 2 * offset, headers, topic)
        model.read(row, kind)
        rows.append(row)
    return rows


@pytest.mark.guarantee("P6.3")
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=events, sizes=cuts)
def test_the_view_and_the_late_outcomes_are_those_of_a_record_by_record_reading(
    settings_for: SettingsFactory, database: Database, history: list[tuple[int, str]], sizes: list[int]
) -> None:
    ours = settings_for()
    database.install(ours)  # the examples share one schema, each has a topic of its own
    topic, ids, model = f"wait-{new_id()}", [new_id() for _ in range(IDS)], Model()
    rows = rows_of(history, topic, ids, model)
    sink = HandFed(ours, topic)
    try:
        begin = 0
        for size in sizes:
            sink.feed(rows[begin : begin + size][::-1])
            begin += size
        sink.feed(rows[begin:])
        found = sink.connection.execute(
            "select wait_expiration_uuid, wait_offset from wait where wait_topic = %s", (topic,)
        ).fetchall()
        late = sink.connection.execute(
            "select wait_offset from late_outcome where wait_topic = %s", (topic,)
        ).fetchall()
    finally:
        sink.close()
    assert dict(found) == model.view
    assert {offset for (offset,) in late} == model.late


def contents(database: Database, ours: Any) -> list[list[tuple[Any, ...]]]:
    tables = ("wait", "sink_progress", "quarantine", "late_outcome", "dead_letter")
    return [database.rows(ours, f"select * from {table} order by 1, 2, 3") for table in tables]


@pytest.mark.guarantee("P4.12")
@pytest.mark.fault("F59")
def test_a_zombie_changes_nothing_and_is_told_that_another_sink_is_alive(
    prepared: SettingsFactory, database: Database
) -> None:
    ours = prepared()
    first, zombie = HandFed(ours), HandFed(ours)
    try:
        wait = rows_of([(0, "wait"), (1, "wait")], "wait", [new_id() for _ in range(IDS)], Model())
        first.feed(wait)
        before = contents(database, ours)
        stale = [replace(wait[0], offset=5), Row(b"bad key", b"v", 1, 6, topic="wait"), replace(wait[1], value=None)]
        with pytest.raises(FencedError, match="another sink is alive"):
            zombie.feed(stale)
        with pytest.raises(FencedError):
            zombie.applier.refresh()
        assert contents(database, ours) == before
        assert zombie.applier.positions[TopicPartition("wait", 0)].next_offset == 0
    finally:
        first.close()
        zombie.close()


def test_a_batch_of_markers_alone_moves_the_position(prepared: SettingsFactory, database: Database) -> None:
    ours = prepared()
    sink = HandFed(ours)
    try:
        sink.feed([], ends={0: 17})
        assert database.rows(ours, "select partition, next_offset from sink_progress order by 1") == [
            (0, 17),
            (1, 0),
            (2, 0),
        ]
    finally:
        sink.close()


@pytest.mark.guarantee("P6.2")
def test_a_batch_is_written_with_its_position_or_not_at_all(prepared: SettingsFactory, database: Database) -> None:
    ours = prepared()
    sink = HandFed(ours)
    try:
        before = contents(database, ours)
        with database.connect(ours) as other:
            other.execute("alter table wait rename column tracestate to elsewhere")
            rows = rows_of([(0, "wait"), (0, "done"), (1, "wait")], "wait", [new_id() for _ in range(IDS)], Model())
            with pytest.raises(Exception, match="tracestate"):
                sink.feed(rows)
            other.execute("alter table wait rename column elsewhere to tracestate")
        assert contents(database, ours) == before
        sink.feed(rows)
        assert database.rows(ours, "select count(*) from wait") == [(1,)]
    finally:
        sink.close()
