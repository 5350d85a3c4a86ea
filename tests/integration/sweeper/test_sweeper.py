"""A whole sweep: which rows are due, the Spark job, the lock, what is recorded, what ends the process."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from sweeper.job import SparkJob, SweepJobFailed
from sweeper.result import PartitionResult, RowOutcome, Sweep, SweepResult
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario, ids, in_process, sweeper_of, with_server_default
from tests.integration.sweeper.test_queries import aged
from tests.support.database import Database
from tests.support.stack import OwnStack
from tests.support.taken_port import take_first_result
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.telemetry.exposition import MetricsRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT_S = 2
END_HOLDER = """
select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'
    and (classid::bigint << 32) | objid::bigint
        = hashtextextended('waitreg.sweep ' || current_schema() || ' ' || %s, 0)
"""
ASKS_FOR_LONGER = """
select 1 from pg_stat_activity
where %s = any(pg_blocking_pids(pid)) and clock_timestamp() - query_start > make_interval(secs => %s)
"""


def test_a_spark_sweep_exports_all_and_is_recorded(scenario: ScenarioFactory, request: pytest.FixtureRequest) -> None:
    at = scenario({"wait.partitions": 3})
    registered = [one for partition in (0, 2) for one in at.register([at.wait_record(n) for n in range(5)], partition)]
    for partition in range(3):
        at.show(partition=partition)
    registry = MetricsRegistry()
    sweeper = sweeper_of(at.settings, SparkJob(at.settings, request.getfixturevalue("spark")), registry)
    sweeps = [sweeper.run_once() for _ in range(2)]
    sweeper.close()
    assert [(sweep.result, sweep.due, sweep.counts, sweep.skipped) for sweep in sweeps] == [
        (SweepResult.DONE, 10, {"exported": 10}, ()),
        (SweepResult.DONE, 10, {"superseded": 10}, ()),
    ]
    assert at.dead_lettered_ids() == ids(registered)
    rows = at.database.rows(at.settings, "select wait_topic, due, counts, result, instance from sweep order by id")
    topic = at.settings.wait.topic
    assert [(*row[:2], Counter(row[2]), *row[3:]) for row in rows] == [
        (topic, 10, Counter(exported=10), "done", "this-host"),
        (topic, 10, Counter(superseded=10), "done", "this-host"),
    ]
    text = registry.expose().decode()
    assert 'waitreg_sweeper_rows_total{outcome="exported"} 10.0' in text
    assert 'waitreg_sweeper_sweeps_total{result="done"} 2.0' in text


@pytest.mark.fault("F65")
def test_a_sweep_whose_results_another_process_hinders_fails_and_sends_nothing_twice(
    scenario: ScenarioFactory, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = scenario({})
    registered = at.due(3)
    with closing(sweeper_of(at.settings, SparkJob(at.settings, spark))) as sweeper:
        take_first_result(monkeypatch)
        failed, again = sweeper.run_once(), sweeper.run_once()
    assert (failed.result, again.result, again.counts) == (SweepResult.FAILED, SweepResult.DONE, {"superseded": 3})
    assert "SweepJobFailed: Spark did not give the results" in failed.reason
    assert at.dead_lettered_ids() == ids(registered)


def test_nothing_due_starts_no_job(at: Scenario) -> None:
    at.due([at.wait_record(1, expires_in_ms=600_000)])

    def never(*question: Any) -> list[PartitionResult]:
        raise AssertionError(f"a job was started for {question}")

    sweep = sweeper_of(at.settings, never).run_once()
    assert (sweep.result, sweep.due) == (SweepResult.DONE, 0)


@pytest.mark.fault("F72")
def test_a_second_sweep_at_the_same_time_is_skipped(at: Scenario) -> None:
    at.due()
    seen: list[Sweep] = []

    def with_another(*question: Any) -> list[PartitionResult]:
        seen.append(sweeper_of(at.settings).run_once())
        return in_process(*question)

    assert sweeper_of(at.settings, with_another).run_once().counts[RowOutcome.EXPORTED] == 1
    assert [(sweep.result, sweep.reason) for sweep in seen] == [(SweepResult.SKIPPED, "another sweep")]
    assert sweeper_of(at.settings).run_once().result is SweepResult.DONE, "the lock was given back"


def test_a_recreated_wait_topic_ends_the_process(at: Scenario) -> None:
    at.due()
    topic = at.settings.wait.topic
    at.topics.delete(topic)
    wait_until(lambda: topic not in at.topics.admin.list_topics(timeout=15).topics, 60, "the topic's end")
    at.topics.create_own(at.settings)
    with pytest.raises(ConfigurationError, match="recreated"):
        sweeper_of(at.settings).run_once()


@pytest.mark.fault("F80")
def test_a_topic_recreated_since_it_was_looked_up_is_noticed_by_the_task(at: Scenario) -> None:
    at.due()

    def late(*question: Any) -> list[PartitionResult]:
        at.database.execute(at.settings, "update sink_progress set topic_id = 'another'")
        return in_process(*question)

    with pytest.raises(ConfigurationError, match="recreated"):
        sweeper_of(at.settings, late).run_once()
    assert at.dead_lettered_ids() == []
    assert at.database.rows(at.settings, "select result from sweep") == [("partial",)]


@pytest.mark.fault("F86")
def test_an_outage_of_postgres_fails_the_sweep_only(own_stack: OwnStack) -> None:
    overrides = {"wait.partitions": 1, "wait.skew_allowance_s": 0, "postgres.connect_timeout_s": 2}
    at = Scenario.made(Topics(own_stack.bootstrap_servers), Database(own_stack.postgres_url), overrides)
    at.due()
    registry = MetricsRegistry()
    sweeper = sweeper_of(at.settings, registry=registry)
    own_stack.postgres.stop()
    assert sweeper.run_once().result is SweepResult.FAILED
    assert "waitreg_sweeper_postgres_up 0.0" in registry.expose().decode()
    own_stack.postgres.start()
    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1
    own_stack.postgres.kill()
    assert sweeper.run_once().result is SweepResult.FAILED, "a connection that broke in use"
    own_stack.postgres.start()
    assert sweeper.run_once().counts[RowOutcome.SUPERSEDED] == 1
    assert len(at.dead_letters()) == 1


def test_old_rows_are_purged(at: Scenario) -> None:
    at.database.execute(at.settings, aged(60, "1 day"))
    sweeper_of(at.settings).run_once()
    for table in ("dead_letter", "quarantine", "late_outcome"):
        assert at.database.rows(at.settings, f"select count(*) from {table}") == [(29,)], table
    assert at.database.rows(at.settings, "select count(*) from sweep") == [(30,)], "29 old ones and this one"


@pytest.mark.fault("F88")
def test_a_postgres_that_takes_no_writes_is_waited_for(at: Scenario) -> None:
    at.due()
    standby = with_server_default(at.settings, "default_transaction_read_only=on")
    sweeper = sweeper_of(standby, registry=(registry := MetricsRegistry()))
    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1, "the log takes it, and the log is what counts"
    assert "waitreg_sweeper_postgres_up 0.0" in registry.expose().decode(), "the next sweep connects again"
    assert sweeper.run_once().counts[RowOutcome.SUPERSEDED] == 1
    assert at.database.rows(at.settings, "select count(*) from sweep") == [(0,)]


@pytest.mark.fault("F76")
@pytest.mark.parametrize(
    ("error", "postgres_up", "recorded"),
    [
        (SweepJobFailed("a worker was lost"), 1.0, [("failed", "SweepJobFailed: a worker was lost")]),
        (psycopg.errors.ReadOnlySqlTransaction("cannot execute in a read-only transaction"), 0.0, []),
    ],
)
def test_an_error_of_the_job_fails_the_sweep_only(
    at: Scenario, error: Exception, postgres_up: float, recorded: list[tuple[str, str]]
) -> None:
    at.due()

    def fail(*question: Any) -> list[PartitionResult]:
        raise error

    registry = MetricsRegistry()
    assert sweeper_of(at.settings, fail, registry).run_once().result is SweepResult.FAILED
    assert f"waitreg_sweeper_postgres_up {postgres_up}" in registry.expose().decode()
    assert at.database.rows(at.settings, "select result, skipped->0->>'reason' from sweep") == recorded


@pytest.mark.fault("F87")
def test_a_connection_that_breaks_during_the_job_takes_no_result_with_it(at: Scenario) -> None:
    at.due()

    def cut_off(*question: Any) -> list[PartitionResult]:
        results = in_process(*question)
        # Another test's sweeper may work on the same server.
        assert at.database.rows(at.settings, END_HOLDER, at.settings.wait.topic) == [(True,)]
        return results

    sweep = sweeper_of(at.settings, cut_off).run_once()
    assert (sweep.result, sweep.counts[RowOutcome.EXPORTED]) == (SweepResult.DONE, 1)
    assert sweeper_of(at.settings).run_once().counts[RowOutcome.SUPERSEDED] == 1, "the lock is free"


@pytest.mark.guarantee("P4.10")
def test_a_statement_time_limit_of_the_server_does_not_end_a_sweep(at: Scenario) -> None:
    at.due()
    limited = with_server_default(at.settings, f"statement_timeout={LIMIT_S}s")
    sweeper = sweeper_of(limited)
    with psycopg.connect(at.database.url) as slow, ThreadPoolExecutor(1) as threads:
        slow.execute(f"lock table {at.settings.postgres.schema_name}.wait in access exclusive mode")
        pid = slow.info.backend_pid
        sweeping = threads.submit(sweeper.run_once)
        wait_until(
            lambda: sweeping.done() or at.database.rows(at.settings, ASKS_FOR_LONGER, pid, 1.5 * LIMIT_S),
            what="a question that outlasts the limit",
        )
        slow.rollback()
        sweep = sweeping.result()
    sweeper.close()
    assert (sweep.result, sweep.counts[RowOutcome.EXPORTED]) == (SweepResult.DONE, 1), sweep.reason
