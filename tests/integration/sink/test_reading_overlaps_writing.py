"""P6, P7: one batch is read while another is written, no more; after a failure nothing that follows is written."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from sink.loop import SinkLoop
from sink.read.batch import SCHEMA
from sink.read.kafka_reader import Batch
from sink.read.ranges import Ranges
from sink.telemetry import SinkTelemetry, TopicState
from sink.topics import wait_topic
from tests.conftest import SettingsFactory
from tests.integration.sink.wait_topic import WaitTopic, new_id, wait_record
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import FencedError
from wait_registry.kafka.clients import admin
from wait_registry.retry import Backoff
from wait_registry.settings.root import Settings
from wait_registry.telemetry.exposition import MetricsRegistry

RECORDS = 20


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
    state = TopicState("wait", 90.0)
    topic = wait_topic(settings, admin(settings.kafka), state, Backoff(1, 1, random.random))
    with closing(database.connect(settings)) as connection:
        connection.autocommit = True
        telemetry = SinkTelemetry(MetricsRegistry(), [state])
        loop = SinkLoop(settings.sink, connection, [topic], {"wait": reader}, telemetry, lambda positions: None)
        loop.run(threading.Event(), once=True)


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
        with database.connect(settings) as other:
            other.execute("update sink_progress set next_offset = 7")

    with pytest.raises(FencedError):
        run(settings, database, CountingReader(move))
    assert database.rows(settings, "select next_offset from sink_progress") == [(7,)]
