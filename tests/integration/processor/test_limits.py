"""Bounds that hold: the prefetch, the producer's queue, and the time that a registration has left."""

from __future__ import annotations

import os
import threading
import time

import pytest
from confluent_kafka import Producer

from tests.integration.processor.running import RunningProcessor
from tests.integration.processor.scenario import Counts, Gate, ScenarioFactory
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.telemetry.metrics import PROCESSOR_CONSUMER_LAG, PROCESSOR_PAUSED


def test_a_record_whose_time_runs_short_is_renewed(processor_scenario: ScenarioFactory) -> None:
    started, released = list[Record](), threading.Event()

    def blocks(record: Record) -> None:
        started.append(record)
        if record.value == b"block":
            released.wait(60)

    at = processor_scenario(
        blocks,
        1,
        {"wait.skew_allowance_s": 0},
        max_in_flight=1,
        max_attempts=1,
        handler_timeout_s=0.5,
        margin_s=0.5,
        ttl_s=4,
        prefetch_max=2,
    )
    at.produce([b"block", b"waits"])
    running = at.start()
    try:
        wait_until(lambda: running.stats.renewed, what="the second registration")
    finally:
        released.set()
    wait_until(lambda: running.settled == {"dead_lettered": 1, "done": 1}, what="both outcomes")
    wait_until(lambda: running.health.ok, what="readiness, when no slot is blocked any more")
    running.stop()
    renewed = at.by_offset()[1]
    first, *_, last = (wait.text("WAIT_EXPIRATION_TIME") for wait in renewed.waits)
    assert first < last
    assert renewed.resolved
    assert renewed.outcomes == ["done"]
    assert started[-1].expires_at is not None
    assert started[-1].expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z") == last


@pytest.mark.guarantee("P7.1")
@pytest.mark.fault("F23")
def test_the_prefetch_stays_within_its_bounds_and_consumption_is_paused(processor_scenario: ScenarioFactory) -> None:
    handler = Gate()
    at = processor_scenario(handler, max_in_flight=4, prefetch_max=10)
    at.produce([b"value"] * 500)
    running = at.start().wait_joined()
    try:
        wait_until(lambda: is_paused(running), what="the pause")
        # Counted when they are acknowledged, which the pause doesn't wait for.
        wait_until(lambda: running.stats.registered >= 10, what="what was polled before the pause")
        # Nothing is fetched now: only a request to the broker shows these.
        at.produce([b"value"] * 500)
        wait_until(lambda: sum(lags(running)) >= 950, what="the lag")
        assert running.stats.registered <= 14, "four records are taken without room"
    finally:
        handler.opened.set()
    wait_until(lambda: running.done == 1000, what="all records")
    wait_until(lambda: sum(lags(running)) == 0, what="the end of the lag")
    wait_until(lambda: not is_paused(running), what="the resumption")
    running.stop()


@pytest.mark.fault("F24")
def test_a_processor_paused_by_large_records_resumes(processor_scenario: ScenarioFactory) -> None:
    handler = Gate()
    # By number there is room for 116, by bytes for 5 of them.
    at = processor_scenario(handler, 3, {"wait.max_message_bytes": 20_000}, max_in_flight=50, prefetch_max_bytes=40_000)
    at.produce([os.urandom(8_000) for _ in range(200)])
    running = at.start().wait_joined()
    try:
        wait_until(lambda: is_paused(running), what="the pause")
    finally:
        handler.opened.set()
    wait_until(lambda: running.done == 200, what="all records")
    running.stop()


@pytest.mark.fault("F22")
def test_a_full_producer_queue_slows_down_and_drops_nothing(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(others={"kafka.librdkafka": {"queue.buffering.max.messages": 3}})
    at.produce([b"value"] * 200)
    assert at.run_once().settled == {"done": 200}
    at.resolved_stories(200)


def test_a_transaction_marker_at_the_end_of_the_log_is_no_lag(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(partitions=1).of_the_input_alone()
    producer = Producer({"bootstrap.servers": at.topics.bootstrap, "transactional.id": at.topic})
    producer.init_transactions(60)
    for value in (b"one", b"two"):
        producer.begin_transaction()
        producer.produce(at.topic, value)
        producer.commit_transaction(60)
    at.topics.wait_settled(at.topic)
    running = at.start()
    wait_until(lambda: running.done == 2, what="both records")
    wait_until(lambda: lags(running) == [0.0], 20, "the end of the lag")
    # What other tools take for lag.
    producer.begin_transaction()
    producer.produce(at.topic, b"aborted")
    producer.flush(60)
    producer.abort_transaction(60)
    wait_until(lambda: at.committed() == [6], 20, "a commit of the log's end")
    running.stop()


def is_paused(running: RunningProcessor) -> bool:
    return running.values(PROCESSOR_PAUSED) == [1]


def lags(running: RunningProcessor) -> list[float]:
    return running.values(PROCESSOR_CONSUMER_LAG)


def test_a_pause_of_all_partitions_ends_as_soon_as_there_is_room(processor_scenario: ScenarioFactory) -> None:
    count, slots = 60, 3
    roomy = processor_scenario(Counts(0.02), partitions=1, max_in_flight=slots)
    lasts: list[float] = []
    for at in (roomy, roomy.changed("processor", prefetch_max=slots)):
        # What is there at the assignment waits for commits, and so for polls without room.
        at.produce([b"value"] * count)
        running = at.start()
        wait_until(lambda running=running: running.settled, what="the first outcome")
        began_s = time.monotonic()
        wait_until(lambda running=running: running.settled == {"done": count}, what="all outcomes")
        lasts.append(time.monotonic() - began_s)
        running.stop()
    # A pause for every three records; each took the client up to a second.
    assert lasts[1] - lasts[0] < count / slots / 4, lasts
