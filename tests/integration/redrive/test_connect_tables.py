"""Alongside a Kafka Connect sink: a sink of ours for the operations topic, and what a redrive refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from sink.rebuild.tables import rebuild
from tests.conftest import SettingsFactory
from tests.integration.redrive.scenario import Scenario
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import new_id, transaction, wait_record
from tests.support.database import Database
from tests.support.settings import changed
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.clock import Clock, SystemClock
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.records.dead_letter import Reason
from wait_registry.records.operation import Kind
from waitreg.redrive.connect_tables import MAX_AGE_S, require_current

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# On a busy machine Spark's first read takes minutes.
SPARK_S = 400.0
AS_CONNECT_INSERTS = "update dead_letter set state = 'open', state_at = null, state_by = null, job = null"


class LaterClock(SystemClock):
    """A clock by which every record is too old."""

    def now_ms(self) -> int:
        return super().now_ms() + int(MAX_AGE_S * 1000) + 60_000


@pytest.fixture
def alongside(prepared: SettingsFactory, topics: Topics, database: Database) -> Scenario:
    """A group whose tables a Kafka Connect sink keeps; its consumer group commits what the test says."""
    more: dict[str, Any] = {
        "processor.expiry_policy": "redeliver",
        "sink.kind": "connect",
        "sink.idle_progress_s": 1,
        "wait.partitions": 1,
    }
    at = Scenario(prepared(more), topics, database)
    at.settings = changed(at.settings, "sink", connect_group=f"{at.group}.wait.sink")
    return at


def commit(at: Scenario, offset: int) -> None:
    """Commit an offset of the wait topic as the Connect sink does."""
    group = at.settings.sink.connect_group
    consumer = Consumer({"bootstrap.servers": at.topics.bootstrap, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(at.settings.wait.topic, 0, offset)], asynchronous=False)
    consumer.close()


def check(at: Scenario, clock: Clock, kind: Kind = Kind.REDRIVE) -> None:
    """Check the tables for a job of this kind."""
    require_current(at.settings, kind, at.admin, clock)


@pytest.mark.guarantee("R1.11")
@pytest.mark.timeout(900)
def test_our_sink_keeps_jobs_marks_and_states(alongside: Scenario, start_sink: StartSink, spark: SparkSession) -> None:
    at = alongside
    at.dead_letters(3)
    at.topics.produce(at.settings.wait.topic, [wait_record(new_id(), 0)])
    at.read()
    sink = start_sink(at.settings).wait_ready()
    at.execute(at.request(limit=2).job)
    redriven = "select count(*) from dead_letter where state = 'redriven' and job = 'job-1' and state_by = 'anna'"
    wait_until(lambda: at.rows(redriven) == [(2,)], SPARK_S, "the states of two dead letters")
    job = "select state, counts from operation"
    wait_until(lambda: at.rows(job) == [("finished", {"redriven": 2})], SPARK_S, "the end of the job")
    # They come after their marks: the Connect sink reads the dead letter topic again.
    at.database.execute(at.settings, AS_CONNECT_INSERTS)
    wait_until(lambda: at.rows(redriven) == [(2,)], SPARK_S, "the states of dead letters that came later")
    assert at.rows("select count(*) from dead_letter where state = 'open'") == [(1,)]
    assert at.rows("select count(*) from wait") == [(0,)]
    topics = {topic for (topic,) in at.rows("select topic from sink_progress")}
    assert at.settings.wait.topic not in topics
    sink.stop()
    marks = at.rows("select * from dead_letter_mark")
    at.database.execute(at.settings, "delete from dead_letter_mark; update dead_letter set state = 'open', job = null")
    rebuild(at.settings, spark)
    assert at.rows("select * from dead_letter_mark") == marks
    assert at.rows(redriven) == [(2,)]
    assert dict(at.execute(at.request("state=redriven", job="job-2").job).counts) == {"already_redriven": 2}


@pytest.mark.guarantee("R1.11")
def test_tables_that_are_too_old_are_refused_until_the_sink_has_caught_up(alongside: Scenario) -> None:
    at = alongside
    at.show_dead_letters(1)
    check(at, LaterClock())  # nothing was ever registered
    at.topics.produce(at.settings.wait.topic, [wait_record(new_id(), 0), wait_record(new_id(), 0)])
    check(at, SystemClock())
    with pytest.raises(TransientError, match=r"the Kafka Connect sink is behind.* is \d+ min old"):
        check(at, LaterClock())
    check(at, LaterClock(), Kind.ARCHIVE)
    commit(at, 1)
    with pytest.raises(TransientError, match="the Kafka Connect sink is behind"):
        check(at, LaterClock())
    commit(at, 2)
    check(at, LaterClock())
    with transaction(at.topics, at.settings.wait.topic, commit=True) as producer:
        producer.produce(at.settings.wait.topic, key=new_id().encode(), value=None, partition=0)
    with pytest.raises(TransientError, match="the Kafka Connect sink is behind"):
        check(at, LaterClock())
    # A sink commits what comes after its last record, and not what comes after a transaction's marker.
    commit(at, 3)
    check(at, LaterClock())


@pytest.mark.guarantee("R1.11")
def test_expired_ones_are_sent_only_if_those_finished_late_may_be(alongside: Scenario) -> None:
    at = alongside
    at.show_dead_letters(1, Reason.EXPIRED)
    assert at.request().job.expected == {"may_be_done": 1}
    with pytest.raises(ConfigurationError, match="add --finished-late to --may-be-done"):
        at.request(allowed=("may_be_done", "no_members"))
    assert at.request(allowed=("may_be_done", "finished_late", "no_members")).job.expected == {"redriven": 1}
