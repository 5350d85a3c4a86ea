"""A broker that doesn't return start offsets delays new partitions only, and they start where they should."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest

from processor.assigned_partition import AssignedPartition
from tests.integration.processor.running import Processors, RunningProcessor
from tests.support.kafka_io import Outgoing
from tests.support.settings import with_broker
from tests.support.tcp_proxy import LIST_OFFSETS, Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import PermanentError
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

OFFSET_FETCH = 9
PROTOCOLS = {
    "cooperative": {"processor.assignment_strategy": "cooperative-sticky"},
    "eager": {"processor.assignment_strategy": "range"},
    "KIP-848": {"processor.group_protocol": "consumer"},
}


class Silence:
    """Requests for committed offsets are lost while it lasts; ``requests`` counts all requests, by API key."""

    def __init__(self) -> None:
        self.lasts = False
        self.requests: Counter[int] = Counter()

    def decide(self, api: int) -> Fate:
        self.requests[api] += 1
        return Fate.LOSE_REQUEST if self.lasts and api == OFFSET_FETCH else Fate.PASS


@contextmanager
def behind(silence: Silence, settings: Settings) -> Iterator[Settings]:
    with KafkaProxy(settings.kafka.bootstrap_servers, silence.decide) as proxy:
        try:
            yield with_broker(settings, proxy.bootstrap_servers)
        finally:  # who leaves the group does so through the proxy
            silence.lasts = False


def cannot_begin(running: RunningProcessor) -> bool:
    return any("can't start" in reason for reason in running.health.reasons)


def assigned(running: RunningProcessor) -> Mapping[tuple[str, int], AssignedPartition]:
    owners: Mapping[tuple[str, int], AssignedPartition] = running.service.pipeline.group_consumer.assigned  # type: ignore[union-attr]
    return owners


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partitions_with_a_late_start_offset_are_processed_from_it(
    protocol: str, processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    handled: list[int] = []

    async def notes(record: Record) -> None:
        handled.append(record.offset)

    settings = processor_settings({"processor.handler": processors.handler(notes), **PROTOCOLS[protocol]}, 1)
    topics.produce(settings.processor.topics[0], [b"%d" % number for number in range(20)])
    silence = Silence()
    silence.lasts = True
    with behind(silence, settings) as settings:
        running = processors.start(settings)
        wait_until(lambda: cannot_begin(running), 60, "a start without an answer")
        topics.produce(settings.processor.topics[0], [b"meanwhile"])
        silence.lasts = False
        wait_until(lambda: running.done == 21, 60, "all records")
        running.stop()
    assert handled == list(range(21))


@pytest.mark.guarantee("P1.9")
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_client_looks_up_no_position_if_the_start_is_late(
    protocol: str, processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    """librdkafka takes the late answer to such a question for the position, and passes records over."""
    handled: list[int] = []

    async def notes(record: Record) -> None:
        handled.append(record.offset)

    settings = processor_settings({"processor.handler": processors.handler(notes), **PROTOCOLS[protocol]}, 1)
    [topic] = settings.processor.topics
    topics.produce(topic, [b"value"] * 5)
    processors.run_once(settings)
    topics.produce(topic, [b"value"] * 5)
    silence = Silence()
    silence.lasts = True
    with behind(silence, settings) as settings:
        running = processors.start(settings)
        wait_until(lambda: cannot_begin(running), 60, "a start without an answer")
        silence.lasts = False
        wait_until(lambda: running.done == 5, 60, "all records")
        running.stop()
    assert handled == list(range(10))
    assert silence.requests[LIST_OFFSETS] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_meanwhile_the_other_partitions_are_processed(
    protocol: str, processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    release, handled = threading.Event(), Counter[tuple[int, int]]()

    async def waits_or_is_done(record: Record) -> None:
        handled[record.partition, record.offset] += 1
        while record.value == b"wait" and not release.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)

    settings = processor_settings({"processor.handler": processors.handler(waits_or_is_done), **PROTOCOLS[protocol]}, 2)
    [topic] = settings.processor.topics

    def produce(value: bytes, *partitions: int) -> None:
        topics.produce(topic, [Outgoing(value, partition=partition) for partition in partitions])

    other = processors.start(settings).wait_joined()
    produce(b"early", *[0, 1] * 10)
    wait_until(lambda: other.done == 20, 60, "what was there before the second member")
    silence = Silence()
    with behind(silence, settings) as settings:
        ours = processors.start(settings).wait_joined()
        wait_until(lambda: len(assigned(ours)) == len(assigned(other)) == 1, 60, "one partition for each")
        [(_, kept)] = assigned(ours)
        moving = 1 - kept
        produce(b"wait", kept)
        wait_until(lambda: handled[kept, 10], 60, "the record that waits")
        silence.lasts = True
        other.stop()
        wait_until(lambda: cannot_begin(ours), 60, "a start without an answer")
        produce(b"meanwhile", moving)
        if protocol != "eager":  # which takes everything away first
            produce(b"meanwhile", kept)
            wait_until(lambda: handled[kept, 11], 60, "a record of the partition that was ours")
        done = ours.done
        release.set()
        wait_until(lambda: ours.done > done, 60, "the end of the record that has waited")
        assert cannot_begin(ours)
        assert (topic, moving) not in assigned(ours)
        silence.lasts = False
        if protocol == "eager":
            produce(b"meanwhile", kept)
        wait_until(lambda: handled[moving, 10], 60, "the record that came meanwhile")
        wait_until(lambda: handled[kept, 11], 60, "a record of the partition that was ours")
        wait_until(lambda: not cannot_begin(ours), 60, "readiness")
        ours.stop()
    # The record that waited was started, and not committed under the eager protocol: it comes again.
    assert {place: count for place, count in handled.items() if count != 1} in ({}, {(kept, 10): 2})
    assert len(handled) == 23


@pytest.mark.guarantee("P8.5")
def test_partitions_revoked_before_their_start_are_dropped(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    handled = Counter[tuple[int, int]]()

    async def counts(record: Record) -> None:
        handled[record.partition, record.offset] += 1

    settings = processor_settings({"processor.handler": processors.handler(counts)}, 2)
    topics.produce(settings.processor.topics[0], [Outgoing(b"value", partition=number % 2) for number in range(20)])
    silence = Silence()
    silence.lasts = True
    with behind(silence, settings) as proxied:
        ours = processors.start(proxied)
        wait_until(lambda: cannot_begin(ours), 60, "starts without an answer")
        other = processors.start(settings).wait_joined()
        wait_until(lambda: len(assigned(other)) == 1, 60, "its share")
        silence.lasts = False
        wait_until(lambda: len(assigned(ours)) == 1, 60, "what is left")
        assert assigned(ours).keys().isdisjoint(assigned(other))
        assert not cannot_begin(ours)
        wait_until(lambda: ours.done + other.done == 20, 60, "all records")
        ours.stop()
        other.stop()
    assert set(handled.values()) == {1}


def test_a_process_that_has_to_end_stops_asking(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    async def done(record: Record) -> None:
        pass

    def asking() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "start-offsets"]

    settings = processor_settings({"processor.handler": processors.handler(done), "kafka.request_timeout_s": 5}, 1)
    silence = Silence()
    silence.lasts = True
    with behind(silence, settings) as settings:
        running = processors.start(settings)
        wait_until(asking, 60, "the thread that asks")
        running.service.fault.report(PermanentError("the end"))
        with pytest.raises(PermanentError, match="the end"):
            running.join()
        wait_until(lambda: not asking(), 60, "the end of the thread that asks")


def test_once_is_not_over_while_a_partition_cannot_begin(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    async def done(record: Record) -> None:
        pass

    settings = processor_settings({"processor.handler": processors.handler(done)}, 1)
    topics.produce(settings.processor.topics[0], [b"value"])
    silence = Silence()
    silence.lasts = True
    with behind(silence, settings) as settings:
        running = processors.start(settings, once=True)
        wait_until(lambda: running.ended or cannot_begin(running), 60, "a start without an answer")
        silence.lasts = False
        running.join()
    assert running.done == 1
