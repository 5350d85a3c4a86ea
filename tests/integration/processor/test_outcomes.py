"""Every polled record ends done, discarded or dead-lettered, with a tombstone, byte for byte (P1, P5)."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64decode

import pytest

from tests.integration.processor.scenario import ScenarioFactory
from tests.support.kafka_io import Outgoing
from wait_registry.handler import Discard, PermanentError, Record, TransientError
from wait_registry.kafka.topics import create_topics
from wait_registry.records.lineage import Lineage, redelivery_headers
from wait_registry.records.topics import redelivery_topic


async def by_value(record: Record) -> Discard | None:
    """Do what the record's value says."""
    match record.value:
        case b"discard":
            return Discard("nothing to do")
        case b"fail":
            raise ValueError("no such order")
        case b"flaky":
            raise TransientError("busy")
        case b"slow":
            await asyncio.sleep(60)
        case b"exit":
            raise SystemExit(1)
    return None


@pytest.mark.guarantee("P3.14")
def test_every_record_gets_its_tombstone_after_what_it_depends_on(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(by_value, handler_timeout_s=0.3, max_attempts=2)
    values = [b"done", b"discard", b"fail", b"flaky", b"slow", b"exit"]
    at.produce([Outgoing(values[i % 6], b"key-%d" % i) for i in range(60)])
    at.run_once()
    expected = {b"done": "done", b"discard": "discarded"}
    found = at.resolved_stories(60)
    for story in found:
        assert story.outcomes == [expected.get(story.waits[0].value or b"", "dead_lettered")]
    assert len({wait.partition for story in found for wait in story.waits}) > 1, "several wait partitions"
    letters = at.letters()
    assert len(letters) == 40
    errors = {letter.value: letter.text("DLQ_ERROR_CLASS") for letter in letters}
    assert errors == {
        b"fail": "ValueError",
        b"flaky": "wait_registry.errors.TransientError",
        b"slow": "TimeoutError",
        b"exit": "SystemExit",
    }
    by_origin = {story.origin: story.waits[0] for story in found}
    for letter in letters:
        topic, partition, offset = (letter.text(f"ORIGINAL_{name}") for name in ("TOPIC", "PARTITION", "OFFSET"))
        wait = by_origin[topic, int(partition), int(offset)]
        assert letter.text("DLQ_REASON") == "failed"
        assert letter.key == wait.header("ORIGINAL_KEY")
        assert (int(letter.text("WAIT_PARTITION")), int(letter.text("WAIT_OFFSET"))) == (wait.partition, wait.offset)
    assert sum(at.committed()) == 60, "all offsets are committed"


def test_several_groups_share_the_wait_topic_and_nothing_else(processor_scenario: ScenarioFactory) -> None:
    async def fails(record: Record) -> None:
        raise ValueError("this group alone")

    first = processor_scenario(by_value, others={"dead_letter.topic": "{topic}.{group}"})
    second = first.changed("processor", group=f"{first.group}2", handler=first.processors.handler(fails))
    first.topics.create_own(second.settings)
    first.produce([b"done"] * 20)
    for each in (first, second):
        each.run_once()
    records = first.topics.read(first.settings.wait.topic)
    groups = [record.text("WAIT_GROUP") for record in records if record.value is not None]
    assert sorted(groups) == sorted([first.group, second.group] * 20)
    assert len({record.key for record in records}) == 40, "ids differ between groups"
    assert first.topics.read(f"{first.topic}.{first.group}") == []
    assert len(first.topics.read(f"{first.topic}.{second.group}")) == 20


MANY = tuple((f"h{number % 7}", os.urandom(number)) for number in range(60))
RECORDS = [
    Outgoing(b"value", b"key"),
    Outgoing(b"value", None),
    Outgoing(b"value", b""),
    Outgoing(None, b"tombstone"),
    Outgoing(b"", b"empty"),
    Outgoing(b"\xff\x00\xfe", b"\x00\xff", (("binary", b"\xff\x00"), ("empty", b""), ("null", None))),
    Outgoing(b"dup", b"d", (("name", b"1"), ("Name", b"2"), ("name", b"1"), ("name", None))),
    Outgoing(b"words", b"w", (("grüße 🌍", "grüße 🌍".encode()), ("", b"no name"))),
    Outgoing(b"imitates", b"i", (("WAIT_LINEAGE", b"1"), ("ORIGINAL_TOPIC", b"x"), ("DLQ_REASON", b"failed"))),
    Outgoing(b"many", b"m", MANY),
    Outgoing(os.urandom(1 << 20), b"a mebibyte"),
    Outgoing(b"old", b"o", timestamp_ms=1),
]


class Seen:
    """A handler that remembers what it gets, and raises if there is an error to raise."""

    def __init__(self, error: Exception | None = None) -> None:
        self.records: list[Record] = []
        self._error = error

    async def __call__(self, record: Record) -> None:
        self.records.append(record)
        if self._error is not None:
            raise self._error


@pytest.mark.guarantee("P5.5")
def test_any_bytes_survive_registration_handler_and_dead_letter(processor_scenario: ScenarioFactory) -> None:
    refuses = Seen(PermanentError("no"))
    at = processor_scenario(refuses, 1, topic_config={"max__message__bytes": "2000000"})
    at.produce(RECORDS)
    at.run_once()
    inputs = {record.offset: record for record in at.topics.read(at.topic)}
    seen = {record.offset: record for record in refuses.records}
    found = at.by_offset()
    letters = {int(letter.text("ORIGINAL_OFFSET")): letter for letter in at.letters()}
    assert len(inputs) == len(found) == len(letters) == len(seen) == len(RECORDS)
    for offset, original in inputs.items():
        handled, wait, letter = seen[offset], found[offset].waits[0], letters[offset]
        assert (handled.key, handled.value, handled.headers) == (original.key, original.value, original.headers)
        assert handled.timestamp == original.timestamp_ms
        assert (letter.key, letter.value) == (original.key, original.value)
        assert letter.headers[: len(original.headers)] == original.headers
        assert letter.headers[len(original.headers)] == ("WAIT_LINEAGE", b"%d" % len(original.headers))
        assert int(letter.text("ORIGINAL_TIMESTAMP")) == original.timestamp_ms
        assert wait.value == (original.value or b"")
        assert wait.text("ORIGINAL_VALUE_NULL") == ("true" if original.value is None else "false")
        assert wait.header("ORIGINAL_KEY") == original.key
        kept = json.loads(wait.text("ORIGINAL_HEADERS"))
        assert [(name, None if v is None else b64decode(v)) for name, v in kept] == list(original.headers)


def test_a_redelivered_record_is_the_original_with_its_next_attempt(processor_scenario: ScenarioFactory) -> None:
    seen = Seen()
    at = processor_scenario(seen, 1, expiry_policy="redeliver")
    create_topics(at.settings)
    topic, group = at.topic, at.group
    again = redelivery_topic(topic, group)
    first, forged = "00000000-0000-8000-8000-000000000001", "00000000-0000-8000-8000-000000000002"
    lineage = Lineage(topic, 7, 42, 1_700_000_000_000, "create", first, 1, 2, group, "i", 2, idempotency_key=forged)
    originals = (("name", b"value"), ("name", None))
    foreign = Lineage(topic, 7, 42, 1, "create", "00000000-0000-8000-8000-000000000001", 1, 2, "another", "i", 2)
    at.topics.produce(
        again,
        [
            Outgoing(b"value", b"key", redelivery_headers(originals, lineage)),
            Outgoing(b"broken", b"key", (("WAIT_LINEAGE", b"0"), ("ORIGINAL_PARTITION", b"many"))),
            Outgoing(b"foreign", b"key", redelivery_headers(originals, foreign)),
        ],
    )
    at.run_once()
    by_value = {record.value: record for record in seen.records}
    redelivered = by_value[b"value"]
    assert (redelivered.topic, redelivered.partition, redelivered.offset) == (topic, 7, 42)
    assert (redelivered.timestamp, redelivered.delivery, redelivered.headers) == (1_700_000_000_000, 2, originals)
    assert b"foreign" not in by_value, "another group's record is passed over"
    broken = by_value[b"broken"]
    assert (broken.topic, broken.delivery) == (again, 1)
    assert len(broken.headers) == 2, "a block that can't be read stays with the record"
    story = at.stories()[topic, 7, 42]
    wait = story.waits[0]
    assert story.outcomes == ["done"]
    assert wait.text("WAIT_DELIVERY") == "2"
    assert wait.text("SOURCE_TOPIC") == again
    assert wait.text("WAIT_EXPIRY_POLICY") == "redeliver"
    assert wait.text("WAIT_IDEMPOTENCY_KEY") == redelivered.idempotency_key != forged, "computed, not believed"


def test_redelivered_records_are_polled_under_another_policy(processor_scenario: ScenarioFactory) -> None:
    seen = Seen()
    at = processor_scenario(seen, 1)
    assert at.settings.processor.expiry_policy == "dlq"
    at.topics.produce(at.again, [b"remaining"])
    at.run_once()
    assert [record.value for record in seen.records] == [b"remaining"]
