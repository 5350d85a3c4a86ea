"""P6, P7: batches grow step by step, shrink if the driver refuses them, and one at most is read ahead."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from sink.loop import SinkLoop
from sink.metrics import SinkTelemetry
from sink.read.kafka_reader import RESULT_LIMIT_PROPERTY, Batch
from sink.read.range_plan import GROWTH, Ranges
from sink.read.record_columns import SCHEMA
from sink.topics import SinkTopics
from sink.topics import WaitTopic as WaitTopicInSink
from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import SinkScenarioFactory
from tests.integration.sink.wait_topic import WaitTopic, new_id, wait_record
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import FencedError
from wait_registry.kafka.clients import admin
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.exposition import MetricsRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 3
RECORD_STEPS = """
create table steps (read_to bigint not null);
create function record_step() returns trigger language plpgsql as $$
begin
    insert into steps select sum(next_offset) from sink_progress;
    return null;
end $$;
create trigger record_step after update on sink_progress for each statement execute function record_step();
"""


@pytest.mark.guarantee("P7.7")
def test_batches_grow_step_by_step(sink_scenario: SinkScenarioFactory) -> None:
    at, records = sink_scenario(), 10_000
    at.drain()  # writes its positions
    at.log.write(*[wait_record(new_id(), number % 3) for number in range(records)])
    at.execute(RECORD_STEPS)
    at.drain()
    read_to = [offset for (offset,) in at.rows("select distinct read_to from steps where read_to > 0 order by 1")]
    assert read_to[-1] == records
    careful = at.settings.sink.max_batch_bytes // at.settings.wait.max_message_bytes
    assert read_to[0] <= careful + at.settings.wait.partitions
    steps = [after - before for before, after in pairwise([0, *read_to])]
    assert all(step <= GROWTH * before + at.settings.wait.partitions for before, step in pairwise(steps))
    assert max(steps) > records / 3, "what was learnt is used"


@pytest.fixture
def small_results(spark: SparkSession) -> Iterator[None]:
    """A driver that takes two megabytes from a job: Spark looks the limit up for every one."""
    conf = spark.sparkContext._jsc.sc().conf()
    before = conf.get(RESULT_LIMIT_PROPERTY)
    conf.set(RESULT_LIMIT_PROPERTY, "2m")
    yield
    conf.set(RESULT_LIMIT_PROPERTY, before)


@pytest.mark.guarantee("P7.7")
@pytest.mark.fault("F64")
@pytest.mark.usefixtures("small_results")
@pytest.mark.parametrize(("count", "size"), [(10, 400_000), (2_600, 2_000)], ids=["few", "many"])
def test_a_batch_too_large_for_the_driver_is_halved_until_it_fits(
    sink_scenario: SinkScenarioFactory, caplog: pytest.LogCaptureFixture, count: int, size: int
) -> None:
    at = sink_scenario()
    at.log.write(*[wait_record(new_id(), 0, value=os.urandom(size)) for _ in range(count)])
    at.drain()
    assert at.is_exact()
    assert f"a batch is larger than {RESULT_LIMIT_PROPERTY} allows" in caplog.text


class CountingReader:
    """Reads nothing but empty batches; the first read is followed by ``then``."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.reads = 0
        self._then = then

    def read(self, ranges: Ranges) -> Batch:
        self.reads += 1
        if self.reads == 1:
            self._then()
        return Batch(SCHEMA.empty_table(), {name: each.end for name, each in ranges.items()})

    def require_alive(self) -> None:
        pass

    def cancel(self) -> None:
        pass


@pytest.fixture
def settings(prepared: SettingsFactory, topics: Topics) -> Settings:
    settings = prepared({"wait.partitions": 1, "sink.max_batch_records": 1, "sink.poll_interval_s": 0.1})
    log = WaitTopic(topics, settings.wait.topic)
    log.write(*[wait_record(new_id(), 0) for _ in range(RECORDS)])
    return settings


def run(settings: Settings, database: Database, reader: CountingReader) -> None:
    topic = WaitTopicInSink(settings, admin(settings.kafka))
    with closing(database.connect(settings)) as connection:
        connection.autocommit = True
        telemetry = SinkTelemetry(MetricsRegistry(), [topic.state])
        topics, readers = SinkTopics(topic, once=True), {topic.name: reader}
        loop = SinkLoop(settings.sink, connection, topics, readers, telemetry, lambda positions: None)
        loop.run(threading.Event())


@pytest.mark.guarantee("P7.14")
def test_one_batch_is_read_ahead_while_another_waits_to_be_written(settings: Settings, database: Database) -> None:
    with closing(database.connect(settings)) as other:
        other.autocommit = False
        reader = CountingReader(lambda: other.execute("lock table sink_progress in exclusive mode"))
        thread = threading.Thread(target=run, args=(settings, database, reader))
        thread.start()
        blocked = "select 1 from pg_locks where relation = 'sink_progress'::regclass and not granted"
        wait_until(lambda: database.rows(settings, blocked) and reader.reads == 2, 60, "a write that waits")
        assert reader.reads == 2
        other.rollback()
    thread.join(60)
    assert reader.reads == RECORDS
    assert database.rows(settings, "select next_offset from sink_progress") == [(RECORDS,)]


@pytest.mark.guarantee("P6.11")
def test_what_was_read_behind_a_batch_that_failed_is_not_written(settings: Settings, database: Database) -> None:
    def move() -> None:
        database.execute(settings, "update sink_progress set next_offset = 7")

    with pytest.raises(FencedError):
        run(settings, database, CountingReader(move))
    assert database.rows(settings, "select next_offset from sink_progress") == [(7,)]
