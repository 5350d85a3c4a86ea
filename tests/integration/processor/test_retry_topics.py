"""Failed records come back from retry topics, when they are due and not before, until the last step (D1)."""

from __future__ import annotations

import asyncio
import os
import time
from functools import partial
from typing import NamedTuple

import pytest

from processor.intake import log_ends
from processor.writing import emptied_topics
from tests.integration.processor.scenario import ProcessorScenario, ScenarioFactory
from tests.support.kafka_io import Outgoing, ReadRecord
from tests.support.waiting import wait_until
from wait_registry.handler import Record, TransientError
from wait_registry.kafka.positions import earliest_offsets
from wait_registry.records.topics import retry_topic
from wait_registry.telemetry.metrics import PROCESSOR_CONSUMED, PROCESSOR_CONSUMER_LAG

DELAYS = {"processor.retry.delays": ("1s", "2s")}
MODES = ("eager", "deferred", "off")
HEADERS = (("a", b"1"), ("a", None), ("WAIT_LINEAGE", b"0"))


class Call(NamedTuple):
    record: Record
    began_ms: float


class Flaky:
    """A handler that fails until a delivery, and remembers its calls."""

    def __init__(self, until: int, call_s: float = 0) -> None:
        self.calls: list[Call] = []
        self._until = until
        self._call_s = call_s

    async def __call__(self, record: Record) -> None:
        self.calls.append(Call(record, time.time() * 1000))
        await asyncio.sleep(self._call_s)
        if record.delivery < self._until:
            raise TransientError("not yet")


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emptied_topics, "FIRST_S", 3600)


def retries(at: ProcessorScenario, delay_s: int) -> str:
    return retry_topic(at.topic, at.group, delay_s)


@pytest.mark.guarantee("D1.1", "P1.27", "P5.6")
@pytest.mark.parametrize("mode", MODES)
def test_a_record_keeps_its_identity_in_each_retry_topic(processor_scenario: ScenarioFactory, mode: str) -> None:
    flaky = Flaky(3)
    at = processor_scenario(flaky, 1, DELAYS, max_attempts=1, registration=mode)
    at.produce([Outgoing(b"value", b"key", HEADERS)])
    running = at.start()
    wait_until(lambda: running.settled == {"retried": 2, "done": 1}, what="the third delivery")
    running.stop()
    originals = [at.topics.read(at.topic)[0], *(at.topics.read(retries(at, delay_s))[0] for delay_s in (1, 2))]
    for number, (call, consumed, delay_s) in enumerate(zip(flaky.calls, originals, (0, 1, 2), strict=True), 1):
        record = call.record
        assert (record.topic, record.partition, record.offset) == (at.topic, 0, 0)
        assert (record.key, record.value, record.headers, record.delivery) == (b"key", b"value", HEADERS, number)
        assert call.began_ms >= consumed.timestamp_ms + delay_s * 1000
    assert len({call.record.wait_id for call in flaky.calls}) == 3
    assert {call.record.idempotency_key for call in flaky.calls} == {flaky.calls[0].record.wait_id}
    carried = [dict(consumed.headers).get("WAIT_IDEMPOTENCY_KEY") for consumed in originals]
    assert carried == [None, None, flaky.calls[0].record.wait_id.encode()], "absent, it is the wait ID of the block"
    consumed_from = [dict(consumed.headers).get("SOURCE_TOPIC") for consumed in originals]
    assert consumed_from == [None, None, retries(at, 1).encode()], "absent, it is the original topic"
    wait_log = sorted(at.topics.read(at.settings.wait.topic), key=lambda entry: entry.timestamp_ms)
    outcomes = [entry.text("WAIT_OUTCOME") for entry in wait_log if entry.value is None]
    # What was there at the assignment is registered in deferred too.
    assert outcomes == ([] if mode == "off" else ["retried", "retried", "done"][: len(outcomes)])
    assert mode != "eager" or len(outcomes) == 3
    assert {_key_of(entry) for entry in wait_log if entry.value is not None} <= {flaky.calls[0].record.wait_id}


@pytest.mark.guarantee("P1.25")
def test_behind_the_last_step_is_the_dead_letter_topic(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(Flaky(9), 1, DELAYS, max_attempts=1)
    at.produce([b"value"])
    running = at.start()
    wait_until(lambda: running.settled == {"retried": 2, "dead_lettered": 1}, what="the dead letter")
    (letter,) = at.letters()
    assert (letter.text("DLQ_REASON"), letter.text("WAIT_DELIVERY")) == ("failed", "3")
    assert letter.text("DLQ_ERROR_MESSAGE") == "not yet"
    assert _key_of(letter) == _key_of(at.topics.read(retries(at, 1))[0]), "the wait ID of the first delivery"
    first = at.topics.read(retries(at, 1))[0]
    assert (first.text("WAIT_DELIVERY"), first.text("WAIT_MAX_DELIVERIES")) == ("2", "4")
    assert (first.text("RETRY_ERROR_MESSAGE"), first.timestamp_type) == ("not yet", "append")


def _key_of(record: ReadRecord) -> str:
    """Return the idempotency key as every reader finds it: a header, or else the wait ID."""
    headers = dict(record.headers)
    return (headers.get("WAIT_IDEMPOTENCY_KEY") or headers["WAIT_EXPIRATION_UUID"] or b"").decode()


@pytest.mark.guarantee("P1.24")
def test_a_step_that_was_removed_is_still_consumed(processor_scenario: ScenarioFactory) -> None:
    flaky = Flaky(2)
    at = processor_scenario(flaky, 1, DELAYS, max_attempts=1)
    at.produce([b"value"])
    running = at.start()
    wait_until(lambda: running.settled.get("retried") == 1, what="the retry record")
    running.stop()
    none = at.changed("processor", retry=at.settings.processor.retry.model_copy(update={"delays": ()}))
    assert none.run_once().settled == {"done": 1}
    assert [call.record.delivery for call in flaky.calls] == [1, 2]


@pytest.mark.guarantee("D1.2")
def test_a_delayed_input_waits(processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_ends, "ASK_EVERY_S", 0.1)
    flaky = Flaky(0)
    at = processor_scenario(flaky, 1, delay_s=2, registration="off")
    ahead_ms = round(time.time() * 1000) + 3_600_000
    at.produce([b"first", Outgoing(b"from an hour ahead", timestamp_ms=ahead_ms), Outgoing(b"old", timestamp_ms=1)])
    began_ms = time.time() * 1000
    running = at.start()
    wait_until(lambda: running.settled == {"done": 3}, what="all records")
    assert sum(running.values(PROCESSOR_CONSUMED)) == 3, "however often they are polled"
    assert [call.record.value for call in flaky.calls] == [b"first", b"from an hour ahead", b"old"]
    published_ms = at.topics.read(at.topic)[0].timestamp_ms
    assert flaky.calls[0].began_ms >= published_ms + 2000
    assert began_ms + 2000 <= flaky.calls[1].began_ms < ahead_ms
    at.produce([Outgoing(b"ahead", timestamp_ms=ahead_ms)])
    wait_until(lambda: sum(running.values(PROCESSOR_CONSUMER_LAG)) == 1, what="one that waits, its partition paused")
    at.produce([Outgoing(b"ahead", timestamp_ms=ahead_ms)])
    wait_until(lambda: running.settled == {"done": 5}, what="both")
    assert flaky.calls[4].began_ms < flaky.calls[3].began_ms + 1900


@pytest.mark.guarantee("P1.25")
def test_a_retry_record_too_large_for_its_topic_is_dead_lettered(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(Flaky(9), 1, DELAYS, max_attempts=1)
    running = at.start()
    wait_until(lambda: running.health.ok, what="readiness, after the checks of a start")
    at.topics.configure(retries(at, 1), "max.message.bytes", "1000")
    at.produce([os.urandom(2000)])
    wait_until(lambda: running.settled == {"dead_lettered": 1}, what="the dead letter")
    (letter,) = at.letters()
    assert "too large" in letter.text("DLQ_ERROR_MESSAGE")


@pytest.mark.guarantee("P7.17")
def test_a_retry_topic_is_emptied(processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emptied_topics, "FIRST_S", 0.2)
    monkeypatch.setattr(emptied_topics, "EVERY_S", 0.2)
    flaky = Flaky(2)
    at = processor_scenario(flaky, 1, DELAYS, max_attempts=1)
    at.produce([b"value"] * 5)
    running = at.start()
    wait_until(lambda: running.settled == {"retried": 5, "done": 5}, what="all deliveries")
    begins = partial(earliest_offsets, at.topics.admin, retries(at, 1), range(at.settings.dead_letter.partitions))
    wait_until(lambda: sum(begins().values()) == 5, what="an empty retry topic")
    assert len(at.topics.read(at.topic)) == 5
