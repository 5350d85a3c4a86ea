"""A record that fails, is retried and dead-lettered: one query tells its deliveries, by its key and by its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from sink.service import SinkService
from tests.conftest import SettingsFactory
from tests.integration.processor.conftest import processors
from tests.integration.processor.running import Processors
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record, TransientError
from wait_registry.postgres.query_file import bind, load_query
from wait_registry.records.topics import retry_topic
from wait_registry.settings.tree import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["processors"]

QUICK = {
    "wait.partitions": 1,
    "processor.commit_interval_s": 0.1,
    "processor.backoff_initial_s": 0.01,
    "processor.max_attempts": 1,
    "processor.retry.delays": ("1s", "2s"),
}


class Failing:
    """A handler that fails each time, and remembers what it was given."""

    def __init__(self) -> None:
        self.ids: list[tuple[str, str]] = []

    async def __call__(self, record: Record) -> None:
        self.ids.append((record.idempotency_key, record.wait_id))
        raise TransientError(f"delivery {record.delivery} failed")


def deliveries(database: Database, settings: Settings, **given: object) -> list[dict[str, Any]]:
    """Return the answer of the query."""
    query = load_query("record_deliveries")
    with database.connect(settings) as connection:
        cursor = connection.execute(query.sql.encode(), bind(query, {name: str(of) for name, of in given.items()}))
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@pytest.mark.guarantee("P1.27")
@pytest.mark.parametrize("registration", ["eager", "off"])
def test_one_query_tells_every_delivery_of_one_record(
    registration: str,
    prepared: SettingsFactory,
    topics: Topics,
    database: Database,
    processors: Processors,
    spark: SparkSession,
) -> None:
    failing = Failing()
    chosen = {"processor.handler": processors.handler(failing), "processor.registration": registration}
    settings = prepared({**QUICK, **chosen}, 1)
    topic, group = settings.processor.topics[0], settings.processor.group
    topics.produce(topic, [Outgoing(b"value", b"key")])
    running = processors.start(settings)
    wait_until(lambda: running.stats.settled["dead_lettered"] == 1, 120, "the dead letter")
    running.stop()
    SinkService(settings, spark, once=True).run()
    (key,), wait_ids = {key for key, _ in failing.ids}, [wait_id for _, wait_id in failing.ids]
    letter = topics.read(settings.dead_letter.topic)[0]
    rows = deliveries(database, settings, id=key)
    second = rows[2]["place"]
    # The key decides the partition.
    assert re.fullmatch(re.escape(retry_topic(topic, group, 2)) + r":\d:0", second)
    assert [(row["delivery"], row["event"], row["place"], row["next_place"], row["wait_id"]) for row in rows] == [
        (1, "handed on", f"{topic}:0:0", None, key),
        (2, "handed on", None, second, None),
        (3, "dead letter: failed", second, f"{letter.topic}:{letter.partition}:{letter.offset}", wait_ids[2]),
    ]
    assert wait_ids[0] == key
    assert {row["idempotency_key"] for row in rows} == {key}
    assert rows[2]["detail"].endswith("delivery 3 failed")
    assert deliveries(database, settings, topic=topic, partition=0, offset=0) == rows
    assert deliveries(database, settings, id=wait_ids[2]) == rows
