"""Peers of the sink: their pace where they are warm, however far they got, and what their writes come to."""

from __future__ import annotations

import pytest

from bench.contenders.debezium_sink import VERSION, Variant
from bench.contenders.group_progress import warm_pace
from bench.contenders.progress_steps import Step
from bench.contenders.table_writes import TableWrites, figures_of
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.jvm import committed_sums

URL = "jdbc:postgresql://localhost:5432/postgres?sslmode=prefer"
CONNECTOR = Connector("wait.sink", {"use.reduction.buffer": "true", "connection.url": URL, "tasks.max": "1"}, "a file")


def steps_at(*records_per_s: int) -> list[Step]:
    """Return a step each second, of so many records, after one of nothing."""
    steps = [Step(0.0, 0)]
    for at, records in enumerate(records_per_s, start=1):
        steps.append(Step(float(at), steps[-1].records + records, at * 0.5))
    return steps


def test_the_pace_is_that_of_the_stretch() -> None:
    steps = steps_at(100, 200, 500, 500, 500, 10)

    assert warm_pace(steps, 1810, (300, 1800)).records_per_s == 500


def test_without_a_stretch_the_slow_beginning_and_the_last_commit_do_not_count() -> None:
    steps = steps_at(10, 50, *[100] * 9, 40)

    assert warm_pace(steps, 1000, None).records_per_s == 100


def test_who_did_not_get_to_the_end_of_the_stretch_is_measured_where_it_was_warm() -> None:
    steps = steps_at(20, *[80] * 10, *[150] * 6)

    assert warm_pace(steps, 1_000_000, (400_000, 950_000)).records_per_s == 150


def test_a_topic_done_in_one_step_counts_from_the_start() -> None:
    assert warm_pace(steps_at(600), 600, None).records_per_s == 600


def test_rows_written_are_shares_of_the_waits() -> None:
    before, after = TableWrites(10, 5, 3, 1_000), TableWrites(40, 15, 33, 21_000)

    assert figures_of(before, after, waits=100) == {
        "rows_inserted": 30,
        "rows_updated": 10,
        "rows_deleted": 30,
        "written_share": 0.4,
        "wal_bytes_per_wait": 200,
    }


@pytest.mark.parametrize(("buffer", "rewrite"), [(True, True), (True, False), (False, False)])
def test_debezium_is_changed_in_nothing_but_what_is_asked_for(buffer: bool, rewrite: bool) -> None:
    changed = Variant(reduction_buffer=buffer, rewrite_inserts=rewrite, tasks=2).applied_to(CONNECTOR)

    assert dict(changed.config) == {
        **CONNECTOR.config,
        "tasks.max": "2",
        "use.reduction.buffer": str(buffer).lower(),
        "connection.url": f"{URL}&reWriteBatchedInserts=true" if rewrite else URL,
    }


def test_each_turn_of_debezium_has_a_group_of_its_own() -> None:
    variant = Variant(reduction_buffer=True, rewrite_inserts=False)

    assert variant.applied_to(CONNECTOR).name != variant.applied_to(CONNECTOR).name


def test_rewritten_inserts_without_the_buffer_are_refused() -> None:
    with pytest.raises(ValueError, match="an id twice in a batch is refused"):
        Variant(reduction_buffer=False, rewrite_inserts=True)


def test_debeziums_version_is_the_one_that_is_fetched() -> None:
    connector, worker = (version.replace("Kafka Connect", "connect-runtime") for version in VERSION.split(", "))

    assert f"{connector.replace(' ', '-')}.jar" in committed_sums("debezium-jdbc")
    assert f"{worker.replace(' ', '-')}.jar" in committed_sums("connect")
