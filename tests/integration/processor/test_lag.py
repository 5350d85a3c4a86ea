"""A group that has worked off everything shows no lag, even where the log ends with a transaction's marker."""

from __future__ import annotations

import urllib.request
from collections.abc import Callable

from confluent_kafka import Producer

from tests.integration.processor.running import Processors
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.settings.root import Settings


async def done(record: Record) -> None:
    """Accept everything."""


def write_in_transactions(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Write each value in a transaction of its own."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    for value in values:
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.commit_transaction(60)


def test_the_marker_behind_the_last_record_is_no_record(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    overrides = {"processor.handler": processors.handler(done)}
    settings = processor_settings(overrides, 1)
    [topic] = settings.processor.topics
    write_in_transactions(topics.bootstrap, topic, [b"one", b"two"])
    topics.wait_settled(topic)
    running = processors.start(settings)
    wait_until(lambda: running.done == 2, 60, "both records")
    wait_until(lambda: lags(running.service.telemetry_port) == [0.0], 20, "the end of the lag")
    running.stop()


def lags(port: int) -> list[float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return [float(line.rpartition(" ")[2]) for line in lines if line.startswith("waitreg_processor_consumer_lag{")]
