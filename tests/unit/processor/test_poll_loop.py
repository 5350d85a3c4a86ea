"""Polled records are neither lost, nor committed too early, nor registered for a partition that is gone."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from processor.assigned_partition import AssignedPartition
from processor.entry import EntryState
from tests.unit.processor.parts import entry, message
from tests.unit.processor.pipeline_bench import PipelineBench
from wait_registry.errors import ConfigurationError, PermanentError
from wait_registry.settings.processor import AssignmentStrategy

Taken = list[tuple[AssignedPartition, Message]]


async def test_records_polled_during_a_publication_are_buffered() -> None:
    bench = PipelineBench(producer={"queue.buffering.max.messages": 1})
    assert bench.poll_loop.register([(bench.owner, message(0)), (bench.owner, message(1))])
    assert not bench.poll_loop.registered()
    late = [(bench.owner, message(2))]
    assert not bench.poll_loop.register(late)
    assert bench.poll_loop.buffered == late
    assert bench.outstanding.records == 2


@pytest.mark.parametrize("paused", [False, True], ids=["polled for records", "polled without room"])
async def test_buffered_records_of_a_released_partition_are_dropped(paused: bool) -> None:
    bench = PipelineBench()
    bench.poll_loop.buffered = [(bench.owner, message(0))]

    def take(count: int) -> Taken:
        bench.poll_loop.revoked([bench.group_consumer.assigned.pop(("input", 0))])
        return []

    bench.group_consumer.take = take  # type: ignore[method-assign]
    if paused:
        bench.poll_loop.poll_without_room(0.0)
    else:
        bench.poll_loop.consume(0.0)
    assert bench.outstanding.records == 0
    assert bench.poll_loop.buffered == []


@pytest.mark.guarantee("P2.3")
async def test_buffered_records_are_registered_before_later_ones() -> None:
    bench = PipelineBench()
    waiting_records(bench, "input", 1)
    polls = 0

    def take(count: int) -> Taken:
        nonlocal polls
        polls += 1
        if polls == 1:
            return [(bench.owner, message(0))]
        if polls == 2:
            bench.poll_loop.revoked([bench.group_consumer.assigned.pop(("input", 1))])
        return []

    async def wait(timeout_s: float) -> Taken:
        return [(bench.owner, message(1))]

    bench.group_consumer.take = take  # type: ignore[method-assign]
    bench.group_consumer.wait = wait  # type: ignore[method-assign]
    bench.group_consumer.read_ends = lambda: None  # type: ignore[method-assign]
    for _ in range(4):
        bench.poll_loop.pausing.polled(-1e9)  # the next poll without room is due
        await bench.poll_loop.iterate()
    assert [one.offset for one in bench.committable.entries_of(bench.owner)] == [0]


def waiting_records(bench: PipelineBench, topic: str, partition: int) -> None:
    """Take all room by registered records of another partition, none of which has started."""
    owner = AssignedPartition(topic, partition, 0)
    bench.group_consumer.assigned[topic, partition] = owner
    while bench.poll_loop.capacity() > 0:
        one = entry(owner, bench.outstanding.records)
        one.state = EntryState.HELD
        bench.outstanding.add(1, one.size)
        owner.warm_up.hold(one.offset, one)


async def test_what_the_client_raises_is_translated() -> None:
    bench = PipelineBench()

    def take(count: int) -> Taken:
        raise KafkaException(KafkaError(KafkaError._FATAL, "fenced instance id"))

    bench.group_consumer.take = take  # type: ignore[method-assign]
    with pytest.raises(PermanentError, match="fenced instance id"):
        await bench.poll_loop.iterate()


@pytest.mark.guarantee("P1.4")
@pytest.mark.parametrize("strategy", AssignmentStrategy)
async def test_an_assignment_without_a_revocation_frees_the_prefetch(strategy: AssignmentStrategy) -> None:
    bench = PipelineBench(assignment_strategy=strategy)
    held = bench.registered(0, EntryState.HELD)
    bench.owner.warm_up.hold(held.offset, held)
    bench.context.start_offsets.at_once = lambda *_: [TopicPartition("input", 0, 0)]  # type: ignore[method-assign]
    bench.group_consumer.on_assign(bench.group_consumer.consumer, [TopicPartition("input", 0)])
    assert bench.fault.error is None
    assert bench.group_consumer.assigned["input", 0] is not bench.owner
    assert bench.outstanding.records == 0


@pytest.mark.guarantee("P2.4")
@pytest.mark.parametrize(
    ("code", "kind"),
    [(KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError), (KafkaError.INVALID_RECORD, PermanentError)],
)
async def test_a_refusal_is_reported_and_blocks_the_commit(code: int, kind: type[Exception]) -> None:
    bench = PipelineBench()
    batch = bench.registration.batch([(bench.owner, message(0)), (bench.owner, message(1))])
    bench.committable.append(batch)

    batch.entries[0].delivered(KafkaError(code), message(0))
    batch.entries[1].delivered(None, message(7))

    assert isinstance(bench.fault.error, kind)
    assert "writing wait record" in str(bench.fault.error)
    assert bench.outbox.unacknowledged == 0, "no dead letter"
    assert bench.committable.advance() == []
    assert bench.owner.committable == 0
