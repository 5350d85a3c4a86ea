"""Every polled record ends done, discarded or dead-lettered, with a tombstone next to its wait record (P1)."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.processor.scenario import ScenarioFactory, numbers
from tests.support.kafka_io import Outgoing
from wait_registry.handler import Discard, Record, TransientError


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


def test_a_handler_class_is_opened_once_and_closed_at_the_end(processor_scenario: ScenarioFactory) -> None:
    calls: list[str] = []

    class Service:
        async def __aenter__(self) -> Service:
            calls.append("open")
            return self

        async def __aexit__(self, *_: object) -> None:
            calls.append("close")

        async def handle(self, record: Record) -> None:
            calls.append("handle")

    at = processor_scenario(Service)
    at.produce(numbers(2))
    at.run_once()
    assert calls == ["open", "handle", "handle", "close"]
