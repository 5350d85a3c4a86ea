"""What the clients answer becomes the engine's events, and a rebalance waits for what is in flight."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from processor.intake.assigned_log import AssignedLog
from processor.intake.start_decision import Start
from processor.loop import ANSWER_S, IDLE_S, REST_S
from processor.protocol.events import Instant, Polled, Tick
from tests.unit.processor.loop_bench import CLOCK, LoopBench
from tests.unit.processor.parts import PLACE, delivery, done, endless, iterate_until
from wait_registry.errors import PermanentError
from wait_registry.handler import Record
from wait_registry.settings.processor import AssignmentStrategy


class Closing:
    """A client within its close: librdkafka answers so to each question about the assignment."""

    def assignment(self) -> None:
        raise KafkaException(KafkaError(KafkaError._DESTROY))


REFUSALS = [
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError._DESTROY,
    # What the broker says to the repetition, after the member was expelled.
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    # An input topic was deleted, and others may be there.
    KafkaError.UNKNOWN_TOPIC_OR_PART,
]
SLOW_BROKER = {"test.mock.broker.rtt": 200}


async def committing(**given: object) -> LoopBench:
    """Return a processor whose call of record 0 runs, after a commit of offset 3, and with three more records."""
    bench = LoopBench(endless, commit_interval_s=0.01, **given)  # type: ignore[arg-type]
    bench.poll(0, 1, 2)
    while bench.stats.registered < 3:
        bench.producer.poll(0.001)
        bench.loop.take_reports()
    await bench.run_until(lambda: bench.commits)
    return bench


async def answer(bench: LoopBench, offset: int, code: int | None) -> None:
    bench.group_consumer.on_commit(None if code is None else KafkaError(code), [TopicPartition(*PLACE, offset)])
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.guarantee("P1.5")
@pytest.mark.parametrize("code", [None, *REFUSALS])
async def test_lost_partitions_are_divided_behind_what_may_be_committed(code: int | None) -> None:
    bench = await committing()
    assert bench.commits == [3]
    bench.poll(3, 4)
    if code is not None:
        await answer(bench, 3, code)
    partition = bench.engine.partitions[PLACE]
    assert (partition.confirmed, partition.requested, bench.fault.error) == (0, 3, None)
    bench.group_consumer.assigned[PLACE] = AssignedLog(PLACE, 0)
    await asyncio.to_thread(bench.group_consumer.on_lost, Closing(), [TopicPartition(*PLACE)])  # type: ignore[arg-type]
    bench.loop.take_reports()
    assert len(bench.engine.records) == 3, "the next owner may start at offset 3"
    await bench.pool.stop()


@pytest.mark.parametrize("code", REFUSALS)
async def test_what_was_refused_is_committed_again(code: int) -> None:
    bench = await committing()
    await answer(bench, 3, code)
    await bench.run_until(lambda: len(bench.commits) == 2)
    await answer(bench, 3, None)
    assert bench.commits == [3, 3]
    assert bench.engine.partitions[PLACE].confirmed == 3
    assert bench.stats.commits == {"failed": 1, "ok": 1}
    await bench.pool.stop()


async def test_a_commit_that_is_refused_for_good_is_a_fault() -> None:
    bench = await committing()
    await answer(bench, 3, KafkaError.GROUP_AUTHORIZATION_FAILED)
    assert "committing offsets of input[0]" in str(bench.fault.error)
    await bench.pool.stop()


@pytest.mark.guarantee("P8.20")
async def test_a_commit_waits_while_the_client_polls() -> None:
    bench = LoopBench(commit_interval_s=0.01)
    ended = asyncio.Event()

    async def poll(*_: object) -> list[Polled]:
        await ended.wait()
        return []

    bench.group_consumer.poll = poll  # type: ignore[method-assign, assignment]
    running = asyncio.ensure_future(bench.loop.run_once())
    await asyncio.sleep(0)
    bench.poll(0)
    await bench.run_until(lambda: bench.engine.partitions[PLACE].requested == 1)
    assert bench.commits == []
    await bench.loop.give_up([PLACE])
    ended.set()
    await running
    await bench.loop.run_once()
    assert bench.commits == [], "it is from before the rebalance"
    await bench.pool.stop()


async def fails(record: Record) -> None:
    raise PermanentError("never")


@pytest.mark.parametrize(
    ("handler", "registration", "longest_s"),
    [
        pytest.param(endless, "eager", ANSWER_S, id="for a registration"),
        pytest.param(done, "eager", REST_S, id="for a tombstone"),
        pytest.param(fails, "off", ANSWER_S, id="for a dead letter"),
        pytest.param(endless, "off", IDLE_S, id="for a record"),
    ],
)
async def test_a_poll_waits_until_something_is_due(handler: Any, registration: str, longest_s: float) -> None:
    bench = LoopBench(handler, producer=SLOW_BROKER, registration=registration)
    bench.engine.wake_s = lambda now_s: 60.0  # type: ignore[method-assign]
    waited: list[float] = []

    async def poll(count: int, timeout_s: float, *_: object) -> list[Polled]:
        waited.append(timeout_s)
        return []

    bench.group_consumer.poll = poll  # type: ignore[method-assign, assignment]
    bench.poll(0)
    outcome_is_due = handler in (done, fails)
    await bench.run_until(lambda: bench.outbox.unacknowledged if outcome_is_due else True)
    await bench.loop.run_once()
    assert waited == [longest_s]
    await bench.pool.stop()


async def test_the_end_of_a_call_wakes_the_loop_that_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("processor.loop.REST_S", 60.0)
    monkeypatch.setattr("processor.loop.POLL_EVERY_S", math.inf)
    ended = asyncio.Event()

    async def ends_when_told(record: Record) -> None:
        await ended.wait()

    bench = LoopBench(ends_when_told, registration="off")
    bench.engine.wake_s = lambda now_s: 60.0  # type: ignore[method-assign]
    bench.poll(*range(bench.engine.flow.prefetch_limit))
    running = asyncio.ensure_future(bench.loop.run_once())
    await iterate_until(lambda: bench.pool.running)
    assert not running.done(), "it waits for room"
    ended.set()
    await asyncio.wait_for(running, 30)
    assert bench.engine.flow.is_worth_a_poll(bench.engine.flow.room())
    await bench.pool.stop()


async def test_a_slow_record_is_registered_only_after_a_poll() -> None:
    """Without a poll, the processor doesn't know that it lost a partition."""
    bench = LoopBench(endless, registration="deferred", register_after_s=0.01)
    bench.poll(0)
    due_s = CLOCK.monotonic() + 0.05
    await bench.run_until(lambda: CLOCK.monotonic() > due_s)
    assert bench.commits == []
    bench.loop.step(Tick())
    assert bench.commits == [0], "its answer shows whose the partition is, so it comes before a registration"
    await answer(bench, 0, None)
    bench.loop.step(Tick(), Instant(CLOCK.now_ms(), CLOCK.monotonic() + 1))
    await bench.run_until(lambda: bench.stats.registered)
    await bench.pool.stop()


@pytest.mark.guarantee("P1.4")
@pytest.mark.parametrize("strategy", AssignmentStrategy)
async def test_an_assignment_without_a_revocation_frees_the_prefetch(strategy: AssignmentStrategy) -> None:
    bench = LoopBench(assignment_strategy=strategy, max_in_flight=2)
    bench.group_consumer.start_offsets.at_once = lambda *_: [Start(*PLACE, 0, None, 0)]  # type: ignore[method-assign]
    bench.group_consumer.assigned[PLACE] = AssignedLog(PLACE, 0)
    former = bench.engine.partitions[PLACE]
    bench.poll(0)
    await asyncio.to_thread(bench.group_consumer.on_assign, bench.group_consumer.consumer, [TopicPartition(*PLACE)])
    assert bench.engine.partitions[PLACE] is not former
    assert (len(bench.engine.records), bench.fault.error) == (0, None)
    await bench.pool.stop()


async def test_a_rebalance_waits_for_the_wait_records_in_flight() -> None:
    bench = LoopBench(endless, producer=SLOW_BROKER)
    bench.poll(0, 1)
    release = await bench.loop.give_up([PLACE])
    assert release.offsets == {PLACE: 0}, "no call has started, so both are the next owner's"
    assert (len(bench.engine.records), bench.stats.registered) == (0, 2)
    await bench.pool.stop()


async def test_wait_records_without_room_are_sent_meanwhile() -> None:
    bench = LoopBench(endless, producer={"queue.buffering.max.messages": 1})
    bench.poll(0, 1, 2)
    assert bench.outbox.full
    await bench.loop.give_up([PLACE])
    assert (bench.outbox.full, bench.stats.registered) == (False, 3)
    await bench.pool.stop()


@pytest.mark.guarantee("O1.3")
async def test_a_rebalance_waits_no_longer_than_its_limit(caplog: pytest.LogCaptureFixture) -> None:
    bench = LoopBench(endless, flush_timeout_s=0.01, producer=SLOW_BROKER)
    bench.poll(0, 1)
    assert (await bench.loop.give_up([PLACE])).offsets == {PLACE: 0}
    assert "2 calls, wait records or dead letters of revoked partitions" in caplog.text
    assert len(bench.engine.records) == 0


async def test_after_a_fault_nothing_is_committed_at_a_rebalance() -> None:
    bench = await committing()
    bench.fault.report(PermanentError("a tombstone was refused"))
    assert (await bench.loop.give_up([PLACE])).offsets == {}
    await bench.pool.stop()


async def test_after_a_fault_no_call_is_started() -> None:
    """The answer that shows a stepped clock is put into the inbox alongside what it forbids."""
    started = []

    async def handler(record: Record) -> None:
        started.append(record.offset)

    bench = LoopBench(handler)
    bench.poll(0)
    bench.fault.report(PermanentError("the clock was stepped"))
    while not bench.stats.registered:
        bench.producer.poll(0.001)
        bench.loop.writers.poll()
    for _ in range(5):
        await asyncio.sleep(0)
    with pytest.raises(PermanentError, match="stepped"):
        await bench.loop.run_once()
    assert started == []


async def test_after_a_fault_the_outcome_of_a_call_is_written() -> None:
    go = asyncio.Event()

    async def handler(_: Record) -> None:
        await go.wait()

    bench = LoopBench(handler)
    bench.poll(0)
    await bench.run_until(lambda: bench.pool.running)
    bench.fault.report(PermanentError("another part failed"))
    go.set()
    await iterate_until(lambda: bench.outbox.unacknowledged)
    assert await bench.loop.flush(10.0) == 0
    assert bench.settled()


async def test_a_fault_within_a_poll_ends_the_process_with_its_own_error() -> None:
    bench, elsewhere = LoopBench(), ("input", 1)

    async def poll(*_: object) -> list[Polled]:
        bench.fault.report(PermanentError("another part failed"))
        return [Polled(elsewhere, [0], [delivery(0, b"")], [0])]

    bench.group_consumer.poll = poll  # type: ignore[method-assign, assignment]
    with pytest.raises(PermanentError, match="another part failed"):
        await bench.loop.run_once()


async def test_what_the_client_raises_is_translated() -> None:
    bench = LoopBench()

    async def poll(*_: object) -> list[Polled]:
        raise KafkaException(KafkaError(KafkaError._FATAL, "fenced instance id"))

    bench.group_consumer.poll = poll  # type: ignore[method-assign, assignment]
    with pytest.raises(PermanentError, match="fenced instance id"):
        await bench.loop.run_once()
