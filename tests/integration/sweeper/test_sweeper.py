"""A whole sweep: the cheap question, the Spark job, the lock, what is written down, what ends the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import psycopg
import pytest
from pydantic import SecretStr

from sweeper.instruments import Instruments
from sweeper.job import SparkJob, SweepJobFailed
from sweeper.partition import sweep_partition
from sweeper.result import PartitionResult, RowOutcome, SweepResult
from sweeper.sweeper import Job, Sweeper
from sweeper.wait_topic import WaitTopic
from tests.conftest import SettingsFactory
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario
from tests.support.database import Database
from tests.support.stack import OwnStack
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings
from wait_registry.telemetry.exposition import MetricsRegistry


def in_process(settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
    """The same work as the Spark job's, without Spark."""
    return [sweep_partition(settings, topic, partition) for partition in partitions]


def sweeper_of(at: Scenario, job: Job = in_process, registry: MetricsRegistry | None = None) -> Sweeper:
    return Sweeper(at.settings, job, Instruments(registry or MetricsRegistry()), "this-host")


def test_a_sweep_by_spark_exports_every_partition_and_is_written_down(
    scenario: ScenarioFactory, request: pytest.FixtureRequest
) -> None:
    at = scenario({"wait.partitions": 3})
    registered = [
        item for partition in (0, 2) for item in at.register([at.wait_record(n) for n in range(5)], partition)
    ]
    for partition in range(3):
        at.show(partition=partition)
    registry = MetricsRegistry()
    sweeper = sweeper_of(at, SparkJob(at.settings, request.getfixturevalue("spark")), registry)

    sweep = sweeper.run_once()

    assert (sweep.result, sweep.due, sweep.counts[RowOutcome.EXPORTED], sweep.skipped) == (SweepResult.DONE, 10, 10, ())
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in registered)
    again = sweeper.run_once()
    assert (again.result, again.due, again.counts[RowOutcome.EXPORTED], again.counts[RowOutcome.SUPERSEDED]) == (
        SweepResult.DONE,
        10,
        0,
        10,
    )
    rows = at.database.rows(at.settings, "select wait_topic, due, counts, result, instance from sweep order by id")
    topic = at.settings.wait.topic
    assert [(*row[:2], Counter(row[2]), *row[3:]) for row in rows] == [
        (topic, 10, Counter(exported=10), "done", "this-host"),
        (topic, 10, Counter(superseded=10), "done", "this-host"),
    ]
    text = registry.expose().decode()
    assert 'waitreg_sweeper_rows_total{outcome="exported"} 10.0' in text
    assert 'waitreg_sweeper_sweeps_total{result="done"} 2.0' in text
    sweeper.close()


def test_nothing_due_starts_no_job(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1, expires_in_ms=600_000)])
    at.show()

    def never(settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
        raise AssertionError(f"a job was started for {partitions}")

    sweep = sweeper_of(at, never).run_once()
    assert (sweep.result, sweep.due) == (SweepResult.DONE, 0)


@pytest.mark.fault("F72")
def test_a_second_sweep_at_the_same_time_is_skipped(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()
    seen = []

    def with_another(settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
        seen.append(sweeper_of(at).run_once())
        return in_process(settings, topic, partitions)

    assert sweeper_of(at, with_another).run_once().counts[RowOutcome.EXPORTED] == 1
    assert [(sweep.result, sweep.reason) for sweep in seen] == [(SweepResult.SKIPPED, "another sweep")]
    assert sweeper_of(at).run_once().result is SweepResult.DONE, "the lock was given back"


def test_a_recreated_wait_topic_ends_the_process(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()
    at.topics.delete(at.settings.wait.topic)
    wait_until(
        lambda: at.settings.wait.topic not in at.topics.admin.list_topics(timeout=15).topics, 60, "the topic's end"
    )
    at.topics.create_own(at.settings)

    with pytest.raises(ConfigurationError, match="recreated"):
        sweeper_of(at).run_once()


@pytest.mark.fault("F80")
def test_a_topic_recreated_since_it_was_looked_up_is_noticed_by_the_task(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()

    def late(settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
        with at.database.connect(at.settings) as connection:
            connection.execute("update sink_progress set topic_id = 'another'")
        return in_process(settings, topic, partitions)

    with pytest.raises(ConfigurationError, match="recreated"):
        sweeper_of(at, late).run_once()
    assert at.dead_lettered_ids() == []
    assert at.database.rows(at.settings, "select result from sweep") == [("partial",)]


def test_a_missing_schema_ends_the_process(settings_for: SettingsFactory, topics: Topics) -> None:
    settings = settings_for()
    topics.create_own(settings)
    sweeper = Sweeper(settings, in_process, Instruments(MetricsRegistry()))
    with pytest.raises(ConfigurationError, match="waitreg db migrate"):
        sweeper.run_once()


def test_a_missing_wait_topic_ends_the_process(settings_for: SettingsFactory, database: Database) -> None:
    settings = settings_for()
    database.install(settings)
    with pytest.raises(ConfigurationError, match="waitreg topics create"):
        Sweeper(settings, in_process, Instruments(MetricsRegistry())).run_once()


@pytest.mark.fault("F86")
def test_postgres_away_fails_a_sweep_and_nothing_else(own_stack: OwnStack) -> None:
    from tests.support.naming import Names
    from tests.support.settings import settings_against

    names = Names()
    settings = settings_against(
        own_stack.bootstrap_servers,
        own_stack.postgres_url,
        names,
        {"wait.partitions": 1, "wait.skew_allowance_s": 0, "postgres.connect_timeout_s": 2},
    )
    topics, database = Topics(own_stack.bootstrap_servers), Database(own_stack.postgres_url)
    topics.create_own(settings)
    database.install(settings)
    at = Scenario(settings, topics, database)
    at.register([at.wait_record(1)])
    at.show()
    registry = MetricsRegistry()
    sweeper = sweeper_of(at, registry=registry)

    own_stack.postgres.stop()
    away = sweeper.run_once()
    assert away.result is SweepResult.FAILED
    assert "waitreg_sweeper_postgres_up 0.0" in registry.expose().decode()
    own_stack.postgres.start()
    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1

    own_stack.postgres.kill()
    assert sweeper.run_once().result is SweepResult.FAILED, "a connection that broke in use"
    own_stack.postgres.start()
    assert sweeper.run_once().counts[RowOutcome.SUPERSEDED] == 1
    assert len(at.dead_letters()) == 1


def test_old_rows_are_purged(scenario: ScenarioFactory) -> None:
    at = scenario()
    with at.database.connect(at.settings) as connection:
        connection.execute(
            """
            insert into dead_letter (topic, partition, "offset", created_at)
                select 'dlq', 0, n, now() - make_interval(days => n) from generate_series(1, 60) n;
            insert into quarantine (topic, partition, "offset", error, created_at)
                select 'wait', 0, n, 'broken', now() - make_interval(days => n) from generate_series(1, 60) n;
            insert into late_outcome (wait_expiration_uuid, wait_topic, wait_partition, wait_offset, created_at)
                select n::text, 'wait', 0, n, now() - make_interval(days => n) from generate_series(1, 60) n;
            insert into sweep (wait_topic, started_at, duration_s, due, skipped, result)
                select 'wait', now() - make_interval(days => n), 0, 0, '[]', 'done'
                from generate_series(1, 60) n;
            """
        )
    sweeper_of(at).run_once()

    for table in ("dead_letter", "quarantine", "late_outcome"):
        assert at.database.rows(at.settings, f"select count(*) from {table}") == [(29,)], table
    assert at.database.rows(at.settings, "select count(*) from sweep") == [(30,)], "29 old ones and this one"


@pytest.mark.fault("F88")
def test_a_postgres_that_takes_no_writes_is_waited_for(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()
    url = at.settings.postgres.url.get_secret_value()
    standby = f"{url}{'&' if '?' in url else '?'}options=-c%20default_transaction_read_only%3Don"
    postgres = at.settings.postgres.model_copy(update={"url": SecretStr(standby)})
    sweeper = Sweeper(
        at.settings.model_copy(update={"postgres": postgres}), in_process, Instruments(registry := MetricsRegistry())
    )

    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1, "the log takes it, and the log is what counts"
    assert "waitreg_sweeper_postgres_up 0.0" in registry.expose().decode(), "the next sweep connects again"
    assert sweeper.run_once().counts[RowOutcome.SUPERSEDED] == 1
    assert at.database.rows(at.settings, "select count(*) from sweep") == [(0,)]


def test_a_write_that_postgres_refuses_in_a_sweep_fails_this_sweep_alone(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()

    def refused(settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
        raise psycopg.errors.ReadOnlySqlTransaction("cannot execute in a read-only transaction")

    assert sweeper_of(at, refused).run_once().result is SweepResult.FAILED


@pytest.mark.fault("F76")
def test_a_sweep_that_fails_elsewhere_leaves_postgres_up_and_is_written_down(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()

    def lost(settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
        raise SweepJobFailed("a worker was lost")

    registry = MetricsRegistry()
    assert sweeper_of(at, lost, registry).run_once().result is SweepResult.FAILED
    assert "waitreg_sweeper_postgres_up 1.0" in registry.expose().decode()
    rows = at.database.rows(at.settings, "select result, skipped->0->>'reason' from sweep")
    assert rows == [("failed", "SweepJobFailed: a worker was lost")]


@pytest.mark.fault("F87")
def test_a_connection_that_breaks_during_the_job_takes_no_result_with_it(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()

    def cut_off(settings: Settings, topic: WaitTopic, partitions: Sequence[int]) -> list[PartitionResult]:
        results = in_process(settings, topic, partitions)
        own_lock = "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and pid in (select pid "
        own_lock += "from pg_stat_activity where application_name = 'waitreg-sweeper')"
        assert at.database.rows(at.settings, own_lock) == [(True,)]
        return results

    sweep = sweeper_of(at, cut_off).run_once()
    assert (sweep.result, sweep.counts[RowOutcome.EXPORTED]) == (SweepResult.DONE, 1)
    assert sweeper_of(at).run_once().counts[RowOutcome.SUPERSEDED] == 1, "the lock is free"
