"""Key, value and headers come out as they went in, through wait record, handler and dead letter (P5)."""

from __future__ import annotations

import json
import os
from base64 import b64decode

import pytest

from tests.integration.processor.scenario import ScenarioFactory
from tests.support.kafka_io import Outgoing
from wait_registry.handler import PermanentError, Record
from wait_registry.kafka.topics import create_topics
from wait_registry.records.lineage import Lineage, redelivery_headers
from wait_registry.records.topics import redelivery_topic

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
