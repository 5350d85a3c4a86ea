"""Every polled record ends done, discarded or dead-lettered, with a tombstone next to its wait record (P1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.processor.running import Processors
from tests.integration.processor.wait_topic import stories
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from wait_registry.handler import Discard, Record, TransientError
from wait_registry.settings.root import Settings

Make = Callable[..., Settings]


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
def test_every_record_gets_its_tombstone_after_what_it_depends_on(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    settings = processor_settings(
        {
            "processor.handler": processors.handler(by_value),
            "processor.handler_timeout_s": 0.3,
            "processor.max_attempts": 2,
        }
    )
    values = [b"done", b"discard", b"fail", b"flaky", b"slow", b"exit"]
    topics.produce(settings.processor.topics[0], [Outgoing(values[i % 6], b"key-%d" % i) for i in range(60)])
    processors.run_once(settings)

    expected = {b"done": "done", b"discard": "discarded"}
    told = stories(topics.read(settings.wait.topic))
    assert len(told) == 60
    for story in told.values():
        assert story.resolved
        assert story.outcomes == [expected.get(story.waits[0].value or b"", "dead_lettered")]
    assert len({wait.partition for story in told.values() for wait in story.waits}) > 1, "several wait partitions"

    letters = topics.read(settings.dead_letter.topic)
    assert len(letters) == 40
    errors = {letter.value: letter.text("DLQ_ERROR_CLASS") for letter in letters}
    assert errors == {
        b"fail": "ValueError",
        b"flaky": "wait_registry.errors.TransientError",
        b"slow": "TimeoutError",
        b"exit": "SystemExit",
    }
    for letter in letters:
        place = (
            letter.text("ORIGINAL_TOPIC"),
            int(letter.text("ORIGINAL_PARTITION")),
            int(letter.text("ORIGINAL_OFFSET")),
        )
        wait = told[place].waits[0]
        assert letter.text("DLQ_REASON") == "failed"
        assert letter.key == wait.header("ORIGINAL_KEY")
        assert (int(letter.text("WAIT_PARTITION")), int(letter.text("WAIT_OFFSET"))) == (wait.partition, wait.offset)
    ends = committed(topics.bootstrap, settings.processor.group, settings.processor.topics[0], 3)
    assert sum(ends) == 60, "all offsets are committed"


def test_several_groups_on_one_topic_share_the_wait_topic_and_nothing_else(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    async def fails(record: Record) -> None:
        raise ValueError("this group alone")

    first = processor_settings(
        {"processor.handler": processors.handler(by_value), "dead_letter.topic": "{topic}.{group}"}
    )
    second = first.model_copy(
        update={
            "processor": first.processor.model_copy(
                update={"group": f"{first.processor.group}2", "handler": processors.handler(fails)}
            )
        }
    )
    topics.create_own(second)
    topic = first.processor.topics[0]
    topics.produce(topic, [b"done"] * 20)
    for settings in (first, second):
        processors.run_once(settings)
    records = topics.read(first.wait.topic)
    by_group = {
        group: [record for record in records if record.value is not None and record.text("WAIT_GROUP") == group]
        for group in (first.processor.group, second.processor.group)
    }
    assert [len(own) for own in by_group.values()] == [20, 20]
    assert len({record.key for record in records}) == 40, "ids differ between groups"
    assert topics.read(f"{topic}.{first.processor.group}") == []
    assert len(topics.read(f"{topic}.{second.processor.group}")) == 20


def test_a_handler_class_is_opened_once_and_closed_at_the_end(
    processor_settings: Make, topics: Topics, processors: Processors, tmp_path: Path
) -> None:
    calls: list[str] = []

    class Service:
        async def __aenter__(self) -> Service:
            calls.append("open")
            return self

        async def __aexit__(self, *_: object) -> None:
            calls.append("close")

        async def handle(self, record: Record) -> None:
            calls.append("handle")

    settings = processor_settings({"processor.handler": processors.handler(Service)})
    topics.produce(settings.processor.topics[0], [b"one", b"two"])
    processors.run_once(settings)
    assert calls == ["open", "handle", "handle", "close"]


def test_a_plain_handler_works_in_threads_and_reports_a_block_of_all_slots(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    import threading

    from tests.support.waiting import wait_until

    release, started = threading.Event(), []

    def blocks(record: Record) -> None:
        started.append(record.offset)
        if record.value == b"block":
            release.wait(60)

    settings = processor_settings(
        {
            "processor.handler": processors.handler(blocks),
            "processor.max_in_flight": 2,
            "processor.handler_timeout_s": 0.2,
            "processor.max_attempts": 1,
        },
        1,
    )
    topics.produce(settings.processor.topics[0], [b"block", b"block", b"fine", b"fine"])
    running = processors.start(settings)
    try:
        reasons = wait_until(lambda: [r for r in running.health.reasons if "slots" in r], 60, "blocked slots")
        assert reasons == ["all 2 slots are blocked by handlers that timed out and have not returned"]
        assert len(started) == 2
    finally:
        release.set()
    wait_until(lambda: running.settled == {"dead_lettered": 2, "done": 2}, 60, "the other records")
    assert running.health.ok
    running.stop()
