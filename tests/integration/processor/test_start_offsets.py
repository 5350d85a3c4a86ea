"""A broker that leaves requests unanswered: nothing that depends on the answer happens before it comes (P1, P2)."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from processor.intake.assigned_log import AssignedLog
from tests.integration.processor.running import RunningProcessor
from tests.integration.processor.scenario import PROTOCOLS, Counts, ProcessorScenario, ScenarioFactory, accepts, numbers
from tests.support.kafka_io import Outgoing
from tests.support.tcp_proxy import FETCH, PRODUCE, Fate, KafkaProxy
from tests.support.waiting import wait_until
from wait_registry.errors import PermanentError
from wait_registry.handler import Record


class Silence:
    """Requests of one kind are lost while it lasts; ``requests`` counts all requests, by API key."""

    def __init__(self, api: int, lasts: bool = True) -> None:
        self.lasts = lasts
        self.requests: Counter[int] = Counter()
        self._api = api

    @contextmanager
    def running(self, at: ProcessorScenario, once: bool = False) -> Iterator[RunningProcessor]:
        """Start a processor whose requests these are."""
        with KafkaProxy(at.topics.bootstrap, self._decide) as proxy:
            try:
                yield at.start(proxy.bootstrap_servers, once)
            finally:  # it leaves the group through the proxy
                self.lasts = False

    def _decide(self, api: int) -> Fate:
        self.requests[api] += 1
        return Fate.LOSE_REQUEST if self.lasts and api == self._api else Fate.PASS


OFFSET_FETCH = 9


class Handled:
    """A handler that remembers places in order, and holds records that say so until they are released."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.places: Counter[tuple[int, int]] = Counter()
        self.released = threading.Event()

    async def __call__(self, record: Record) -> None:
        self.offsets.append(record.offset)
        self.places[record.partition, record.offset] += 1
        while record.value == b"wait" and not self.released.is_set():  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.01)


def cannot_begin(running: RunningProcessor) -> bool:
    return any("can't start" in reason for reason in running.health.reasons)


def wait_silent(running: RunningProcessor) -> None:
    wait_until(lambda: cannot_begin(running), what="a start without an answer")


def assigned(running: RunningProcessor) -> Mapping[tuple[str, int], AssignedLog]:
    owners: Mapping[tuple[str, int], AssignedLog] = running.service.parts.loop.source.assigned  # type: ignore[union-attr]
    return owners


@pytest.mark.guarantee("P1.9")
@pytest.mark.parametrize("before", [0, 5], ids=["a new group", "a group with a position"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partitions_begin_at_late_offsets(protocol: str, before: int, processor_scenario: ScenarioFactory) -> None:
    """The client looks up no position itself: it takes a late answer for the position, and passes records over."""
    handled, silence = Handled(), Silence(OFFSET_FETCH)
    at = processor_scenario(handled, 1, **PROTOCOLS[protocol])
    if before:
        at.produce(numbers(before))
        at.run_once()
    at.produce(numbers(20))
    with silence.running(at) as running:
        wait_silent(running)
        at.produce([b"meanwhile"])
        silence.lasts = False
        wait_until(lambda: running.done == 21, what="all records")
        running.stop()
    assert sorted(handled.offsets) == list(range(before + 21))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_meanwhile_the_other_partitions_are_processed(protocol: str, processor_scenario: ScenarioFactory) -> None:
    handled, silence = Handled(), Silence(OFFSET_FETCH, lasts=False)
    at = processor_scenario(handled, 2, **PROTOCOLS[protocol]).of_the_input_alone()

    def produce(value: bytes, partition: int) -> None:
        at.produce([Outgoing(value, partition=partition)])

    def wait_handled(partition: int, offset: int) -> None:
        wait_until(lambda: handled.places[partition, offset], what=f"record {offset} of partition {partition}")

    other = at.start().wait_joined()
    at.produce_to_each(10)
    wait_until(lambda: other.done == 20, what="what was there before the second member")
    with silence.running(at) as ours:
        ours.wait_joined()
        wait_until(lambda: len(assigned(ours)) == len(assigned(other)) == 1, what="one partition for each")
        [(_, kept)] = assigned(ours)
        moving = 1 - kept
        produce(b"wait", kept)
        wait_handled(kept, 10)
        silence.lasts = True
        other.stop()
        wait_silent(ours)
        produce(b"meanwhile", moving)
        if protocol != "eager":  # which takes everything away first
            produce(b"meanwhile", kept)
            wait_handled(kept, 11)
        done = ours.done
        handled.released.set()
        wait_until(lambda: ours.done > done, what="the end of the record that has waited")
        assert cannot_begin(ours)
        assert (at.topic, moving) not in assigned(ours)
        silence.lasts = False
        if protocol == "eager":
            produce(b"meanwhile", kept)
        wait_handled(moving, 10)
        wait_handled(kept, 11)
        wait_until(lambda: not cannot_begin(ours), what="readiness")
        ours.stop()
    # The record that waited was started, and not committed under the eager protocol: it comes again.
    assert {place: count for place, count in handled.places.items() if count != 1} in ({}, {(kept, 10): 2})
    assert len(handled.places) == 23


@pytest.mark.guarantee("P8.5")
def test_partitions_revoked_before_their_start_are_dropped(processor_scenario: ScenarioFactory) -> None:
    handled, silence = Handled(), Silence(OFFSET_FETCH)
    at = processor_scenario(handled, 2).of_the_input_alone()
    at.produce_to_each(10)
    with silence.running(at) as ours:
        wait_silent(ours)
        other = at.start().wait_joined()
        wait_until(lambda: len(assigned(other)) == 1, what="its share")
        silence.lasts = False
        wait_until(lambda: len(assigned(ours)) == 1, what="what is left")
        assert assigned(ours).keys().isdisjoint(assigned(other))
        assert not cannot_begin(ours)
        wait_until(lambda: ours.done + other.done == 20, what="all records")
        ours.stop()
        other.stop()
    assert set(handled.places.values()) == {1}


def test_a_process_that_has_to_end_stops_asking(processor_scenario: ScenarioFactory) -> None:
    def asking() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "start-offsets"]

    at = processor_scenario(partitions=1, others={"kafka.request_timeout_s": 5})
    with Silence(OFFSET_FETCH).running(at) as running:
        wait_until(asking, what="the thread that asks")
        running.service.fault.report(PermanentError("the end"))
        with pytest.raises(PermanentError, match="the end"):
            running.join()
        wait_until(lambda: not asking(), what="the end of the thread that asks")


def test_once_is_not_over_while_a_partition_cannot_begin(processor_scenario: ScenarioFactory) -> None:
    at, silence = processor_scenario(partitions=1), Silence(OFFSET_FETCH)
    at.produce([b"value"])
    with silence.running(at, once=True) as running:
        wait_until(lambda: running.ended or cannot_begin(running), what="a start without an answer")
        silence.lasts = False
        running.join()
    assert running.done == 1


OFFSET_COMMIT = 8
RECORDS = 20


def with_records(processor_scenario: ScenarioFactory, handler: Any) -> ProcessorScenario:
    """Return a group whose topic has records; its requests are sent again if they get no answer in time."""
    at = processor_scenario(handler, 1, {"kafka.librdkafka": {"socket.timeout.ms": 4_000}})
    at.produce(numbers(RECORDS))
    return at


def wait_for_fetches(silence: Silence, count: int) -> None:
    """Wait until the processor has fetched this often; a fetch takes a tenth of a second, like a commit's pause."""
    begun = silence.requests[FETCH]
    wait_until(lambda: silence.requests[FETCH] >= begun + count, what=f"{count} more fetches")


@pytest.mark.guarantee("P2.2", "C.2")
@pytest.mark.fault("F41")
def test_nothing_is_committed_while_registrations_are_unanswered(processor_scenario: ScenarioFactory) -> None:
    at, silence = with_records(processor_scenario, accepts), Silence(PRODUCE)
    with silence.running(at) as running:
        wait_until(
            lambda: silence.requests[PRODUCE] and running.stats.consumed[at.topic] == RECORDS,
            what="the lost registration",
        )
        wait_for_fetches(silence, 10)
        assert silence.requests[OFFSET_COMMIT] == 1
        assert at.committed() == [0], "the beginning, which was committed before the first record"
        silence.lasts = False
        wait_until(lambda: running.done == RECORDS, what="all records")
        wait_until(lambda: at.committed() == [RECORDS], what="the commit")
        running.stop()


@pytest.mark.guarantee("P1.1")
@pytest.mark.fault("F42")
def test_no_handler_starts_while_the_first_commit_is_unanswered(processor_scenario: ScenarioFactory) -> None:
    """Otherwise a record that kills its process would be polled again indefinitely."""
    handler, silence = Counts(), Silence(OFFSET_COMMIT)
    with silence.running(with_records(processor_scenario, handler)) as running:
        wait_until(lambda: silence.requests[OFFSET_COMMIT] > 1, what="the lost commits")
        assert not (handler.calls or running.stats.registered), "the next owner wouldn't know"
        silence.lasts = False
        wait_until(lambda: running.done == RECORDS, what="all records")
        assert [offset for _, offset in handler.calls] == list(range(RECORDS))
        running.stop()
