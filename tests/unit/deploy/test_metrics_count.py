"""Metrics that stay 0 while all is well are counted too, and every label value that is known is one that exists."""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from confluent_kafka import KafkaError, TopicPartition

from processor.fault import Fault
from processor.health.broker_connection import BrokerConnection
from processor.health.stats import Stats
from processor.intake.assigned_log import AssignedLog
from processor.metrics import partition_readings, parts_readings, stats_readings
from processor.protocol.partition import DueTimes, Partition
from sink.apply.applier import Applied
from sink.health import TopicHealth
from sink.metrics import SinkTelemetry, lag_and_staleness
from sink.position import LogEnds, Position
from sink.position import TopicPartition as SinkPartition
from sink.read.kafka_reader import ReadFailed
from sweeper.housekeeping import TABLES
from sweeper.metrics import Instruments
from sweeper.result import PartitionResult, RowOutcome, Skip, Sweep, SweepResult
from tests.unit.processor.loop_bench import CLOCK, LoopBench
from tests.unit.processor.parts import PLACE
from wait_registry.errors import TransientError
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.records.tombstone import Outcome
from wait_registry.telemetry import metrics as m
from wait_registry.telemetry.exposition import HistogramReading, MetricsRegistry, Reading
from wait_registry.telemetry.metrics import Metric

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def values(readings: Iterable[Reading | HistogramReading], metric: Metric) -> dict[tuple[str, ...], float]:
    return {r.labels: r.value for r in readings if isinstance(r, Reading) and r.metric is metric}


# ---- processor


def test_unacknowledged_records_are_shown() -> None:
    async def readings() -> list[Reading]:
        bench = LoopBench()
        bench.poll(0, 1)
        bench.outbox.unacknowledged = 3
        return list(parts_readings(bench.parts))

    found = asyncio.run(readings())
    assert values(found, m.PROCESSOR_UNACKNOWLEDGED) == {(): 2}
    assert values(found, m.PROCESSOR_OUTBOX) == {(): 3}


def test_what_is_consumed_and_not_committed_is_shown_by_partition() -> None:
    behind, level = Partition(("orders", 0), 10), Partition(("orders", 1), 4)
    behind.add(array("q", [16]))
    partitions = {partition.place: partition for partition in (behind, level)}
    found = list(partition_readings([AssignedLog(place, None) for place in partitions], partitions))
    assert values(found, m.PROCESSOR_COMMIT_LAG) == {("orders", "0"): 7, ("orders", "1"): 0}


def test_the_lag_of_an_unread_partition_counts_from_its_start() -> None:
    unread, taken, unknown = (AssignedLog(("orders", number), None) for number in range(3))
    unread.update_watermarks(100, 130)
    taken.update_watermarks(100, 130)
    taken.polled_below(120)
    unknown.update_watermarks(-1001, -1001)
    lags = values(partition_readings([unread, taken, unknown], {}), m.PROCESSOR_CONSUMER_LAG)
    assert lags == {("orders", "0"): 30, ("orders", "1"): 10}


def test_what_is_not_due_is_no_due_lag() -> None:
    inputs, early, unasked = (AssignedLog((topic, 0), 5) for topic in ("orders", "orders.retry", "orders.later"))
    partitions = {log.place: Partition(log.place, 5, due_times=DueTimes(10, True)) for log in (early, unasked)}
    for log in (inputs, early, unasked):
        log.note_end(45)
    early.due_end = 9
    found = list(partition_readings([inputs, early, unasked], partitions))
    assert values(found, m.PROCESSOR_CONSUMER_LAG) == {(log.topic, "0"): 40 for log in (inputs, early, unasked)}
    assert values(found, m.PROCESSOR_DUE_LAG) == {("orders", "0"): 40, ("orders.retry", "0"): 4}


def test_refused_commits_are_counted_and_confirmed_ones_leave_their_time() -> None:
    async def readings() -> list[Reading | HistogramReading]:
        bench = LoopBench()
        for refusal in (KafkaError(KafkaError.REBALANCE_IN_PROGRESS), None):
            bench.group_consumer.on_commit(refusal, [TopicPartition(*PLACE, 0)])
            await asyncio.sleep(0)
            bench.loop.take_reports()
        return list(stats_readings(bench.stats, BrokerConnection(Fault())))

    found = asyncio.run(readings())
    assert values(found, m.PROCESSOR_COMMITS) == {("ok",): 1, ("failed",): 1}
    assert values(found, m.PROCESSOR_LAST_COMMIT)[()] * 1000 == CLOCK.now_ms()


def test_a_processor_that_has_done_nothing_shows_zeros() -> None:
    found = list(stats_readings(Stats(), BrokerConnection(Fault())))
    for metric in (m.PROCESSOR_SETTLED, m.PROCESSOR_DEAD_LETTERS, m.PROCESSOR_ATTEMPTS, m.PROCESSOR_REBALANCES):
        assert values(found, metric) == dict.fromkeys(metric.known, 0)
    histograms = {(r.metric, r.labels) for r in found if isinstance(r, HistogramReading)}
    assert histograms == {
        (m.PROCESSOR_QUEUE_SECONDS, ()),
        *((m.PROCESSOR_HANDLER_SECONDS, (result,)) for result in m.RESULTS),
    }


# ---- sink


def test_a_sink_that_is_behind_shows_by_how_much_and_how_old_it_is() -> None:
    state, place = TopicHealth("wait", 90.0), SinkPartition("waits", 0)
    state.reading(7_200_000)
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    state.committed(Applied({place: Position(5, an_hour_ago)}, LogEnds({place: 30}, an_hour_ago), 5, None))
    found = list(lag_and_staleness(state))
    assert values(found, m.SINK_LAG) == {("waits", "0"): 25}
    assert values(found, m.SINK_STALENESS)["waits",] == pytest.approx(3600, abs=600)
    assert values(found, m.SINK_STALENESS_LIMIT) == {("waits",): 3600}


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (psycopg.OperationalError("gone"), "postgres"),
        (PostgresUnavailable("away"), "postgres"),
        (ReadFailed("no leader"), "spark"),
        (TransientError("no answer"), "kafka"),
        (ValueError("a bug"), "other"),
    ],
)
def test_a_failure_is_counted_by_its_cause_and_reported(error: Exception, cause: str) -> None:
    registry, state = MetricsRegistry(), TopicHealth("wait", 90.0)
    SinkTelemetry(registry, [state]).failed(state, error)
    exposed = registry.expose().decode()
    assert f'\nwaitreg_sink_restarts_total{{cause="{cause}",stream="wait"}} 1.0\n' in exposed
    assert '\nwaitreg_sink_query_up{stream="wait"} 0.0\n' in exposed
    assert state.reasons()


def test_a_sink_shows_whether_it_is_the_standby() -> None:
    registry = MetricsRegistry()
    telemetry = SinkTelemetry(registry, [])
    shown = []
    for reason in ("standby", "waiting for Postgres", None):
        telemetry.waiting(reason)
        shown.append(registry.prometheus.get_sample_value(m.SINK_STANDBY.name))
    assert shown == [1, 0, 0]


# ---- sweeper


def last_sweep(registry: MetricsRegistry) -> float | None:
    return registry.prometheus.get_sample_value(m.SWEEPER_LAST_SWEEP.name)


def test_what_a_sweep_skips_is_counted_by_reason_and_row() -> None:
    registry = MetricsRegistry()
    instruments = Instruments(registry)
    counts = Counter({RowOutcome.SUPERSEDED: 4, RowOutcome.UNSEEN: 3, RowOutcome.UNSENDABLE: 2})
    results = [PartitionResult(0, counts), *(PartitionResult(1, skip=s) for s in Skip)]
    instruments.swept(Sweep("waits", NOW, 1.5, 9, results))
    text = registry.expose().decode()
    for line in (
        'waitreg_sweeper_rows_total{outcome="superseded"} 4.0',
        'waitreg_sweeper_rows_total{outcome="unseen"} 3.0',
        'waitreg_sweeper_rows_total{outcome="unsendable"} 2.0',
        'waitreg_sweeper_rows_total{outcome="exported"} 0.0',
        "waitreg_sweeper_unsendable_rows 2.0",
        'waitreg_sweeper_sweeps_total{result="partial"} 1.0',
        *(f'waitreg_sweeper_partitions_skipped_total{{reason="{skip.value}"}} 1.0' for skip in Skip),
        "waitreg_sweeper_last_success_timestamp_seconds 0.0",
    ):
        assert f"\n{line}\n" in text
    assert last_sweep(registry) == NOW.timestamp() + 1.5


def test_a_failed_sweep_is_no_sweep_and_forgets_no_unsendable_row() -> None:
    registry = MetricsRegistry()
    instruments = Instruments(registry)
    instruments.swept(Sweep("waits", NOW, 1.0, 1, [PartitionResult(0, Counter({RowOutcome.UNSENDABLE: 1}))]))
    instruments.swept(Sweep("waits", NOW, 9.0, unswept=SweepResult.FAILED, reason="Postgres is away"))
    assert "\nwaitreg_sweeper_unsendable_rows 1.0\n" in registry.expose().decode()
    assert last_sweep(registry) == NOW.timestamp() + 1.0


def test_the_age_of_the_tables_grows_while_postgres_is_unavailable() -> None:
    registry, now_s = MetricsRegistry(), [100.0]
    instruments = Instruments(registry, lambda: now_s[0])
    assert "waitreg_sweeper_tables_staleness_seconds" not in registry.expose().decode(), "nothing is known yet"
    instruments.tables(30.0, 7_200_000)
    now_s[0] += 50
    text = registry.expose().decode()
    assert "\nwaitreg_sweeper_tables_staleness_seconds 80.0\n" in text
    assert "\nwaitreg_sweeper_tables_staleness_limit_seconds 3600.0\n" in text


# ---- label values


@pytest.mark.parametrize(
    ("metric", "exist"),
    [
        (m.SWEEPER_SKIPPED, [skip.value for skip in Skip]),
        (m.SWEEPER_ROWS, [outcome.value for outcome in RowOutcome]),
        (m.SWEEPER_SWEEPS, [result.value for result in SweepResult]),
        (m.SWEEPER_PURGED, TABLES),
        (m.PROCESSOR_SETTLED, [outcome.value for outcome in Outcome if outcome.by_processor]),
    ],
    ids=lambda value: value.name if isinstance(value, Metric) else None,
)
def test_the_known_label_values_are_those_that_exist(metric: Metric, exist: Iterable[str]) -> None:
    assert {label for (label,) in metric.known} == set(exist)
