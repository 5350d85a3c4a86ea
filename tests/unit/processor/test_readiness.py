"""What makes a processor not ready, and the reasons that it answers (P8); a blocked event loop is one."""

from __future__ import annotations

import asyncio
import threading

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from processor.calls.deadline import DeadlineWatchdog
from processor.fault import Fault
from processor.health.readiness import LOOP_BLOCKED_S, UNACKNOWLEDGED_S, Condition
from processor.health.stall_watchdog import WARN_AFTER_S, StallWatchdog
from processor.writing.outbox import ANY_PARTITION, Outbox, Receipt
from tests.support.waiting import wait_until
from tests.unit.processor.loop_bench import LoopBench
from tests.unit.processor.parts import PLACE
from wait_registry.clock import SystemClock
from wait_registry.errors import PermanentError
from wait_registry.settings.processor import AssignmentStrategy

GONE = [TopicPartition("input", 0)]
NO_PARTITIONS = "no partitions assigned yet"


def reasons(**condition: float) -> list[str]:
    return list(Condition(50, **condition).reasons())  # type: ignore[arg-type]


def test_a_process_with_a_blocked_loop_is_not_ready() -> None:
    [reason] = reasons(blocked_s=LOOP_BLOCKED_S + 5)
    assert "blocked for 20 s" in reason
    assert reasons(blocked_s=LOOP_BLOCKED_S - 5) == [], "a flush within a rebalance is not a blocked loop"


def test_a_blocked_loop_is_not_blamed_on_the_broker() -> None:
    waited_s = UNACKNOWLEDGED_S + 10
    [reason] = reasons(blocked_s=waited_s - 1, registering_s=waited_s, settling_s=waited_s)
    assert "broker unavailable" not in reason
    both = reasons(blocked_s=5, registering_s=waited_s, settling_s=waited_s)
    assert [reason.partition(":")[2] for reason in both] == [" broker unavailable or too few in-sync replicas"] * 2


def test_a_process_without_a_free_slot_is_not_ready() -> None:
    [reason] = reasons(blocked=50)
    assert "all 50 slots are blocked" in reason
    assert reasons(blocked=49) == []


def test_unacknowledged_wait_records_mean_not_ready() -> None:
    assert reasons(registering_s=UNACKNOWLEDGED_S) == []
    [reason] = reasons(registering_s=UNACKNOWLEDGED_S + 1)
    assert reason.startswith("wait records unacknowledged for 16 s")


def test_unacknowledged_dead_letters_mean_not_ready() -> None:
    now_s = [100.0]
    # librdkafka's own broker: it answers as soon as it is asked.
    producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1})
    outbox = Outbox(producer, lambda: producer, 1_000_000, Fault(), lambda: now_s[0])
    assert outbox.waiting_s() == 0, "nothing has been sent"
    outbox.expect(1)
    outbox.put("topic", None, b"key", ANY_PARTITION, Receipt(outbox, "a letter", "topic", lambda message: None, []), [])
    now_s[0] += UNACKNOWLEDGED_S + 5
    [reason] = reasons(settling_s=outbox.waiting_s())
    assert reason.startswith("tombstones or dead letters unacknowledged for 20 s")
    while outbox.unacknowledged:
        producer.poll(0.1)
    assert reasons(settling_s=outbox.waiting_s()) == []


@pytest.mark.guarantee("P8.23")
@pytest.mark.parametrize(
    ("callback", "strategy", "ready"),
    [
        *[("on_lost", strategy, False) for strategy in AssignmentStrategy],
        ("on_revoke", AssignmentStrategy.RANGE, False),
        ("on_revoke", AssignmentStrategy.COOPERATIVE_STICKY, True),
    ],
)
async def test_without_partitions_only_a_cooperative_member_is_ready(
    callback: str, strategy: AssignmentStrategy, ready: bool
) -> None:
    bench = LoopBench(assignment_strategy=strategy)
    bench.membership.assigned("own")
    assert NO_PARTITIONS not in bench.parts.condition(0.0).reasons()
    # Within a poll, which waits for the callback.
    bench.group_consumer.thread.poll = lambda *_: asyncio.sleep(0, ([], True))  # type: ignore[method-assign, assignment]
    await bench.group_consumer.poll(1, 0, (), bench.loop.give_up)
    await asyncio.to_thread(getattr(bench.group_consumer, callback), bench.group_consumer.consumer, GONE)
    assert bench.fault.error is None
    assert not bench.group_consumer.assigned
    assert (NO_PARTITIONS not in bench.parts.condition(0.0).reasons()) is ready


@pytest.mark.guarantee("P8.15")
async def test_partitions_lost_while_the_client_closes_are_no_fault() -> None:
    """Seen in chaos (seed 6153): the member was unknown to the group when it left, and the process ended with 1."""

    class Closing:
        """A client within its close: librdkafka answers so to each question about the assignment."""

        def assignment(self) -> None:
            raise KafkaException(KafkaError(KafkaError._DESTROY))

    bench = LoopBench(assignment_strategy=AssignmentStrategy.COOPERATIVE_STICKY)
    await asyncio.to_thread(bench.group_consumer.on_lost, Closing(), GONE)  # type: ignore[arg-type]
    assert bench.fault.error is None
    assert not bench.group_consumer.assigned


UNANSWERED = {"linger.ms": 600_000, "message.timeout.ms": 0}


def test_the_blocked_time_grows_while_a_handler_blocks() -> None:
    watchdog, release, ended = DeadlineWatchdog(SystemClock(), 0.1), threading.Event(), threading.Event()

    async def main() -> None:
        watchdog.start()
        await asyncio.sleep(0)
        release.wait(60)
        while not ended.is_set():  # noqa: ASYNC110 - the loop turns
            await asyncio.sleep(0)
        watchdog.stop()

    assert watchdog.late_s() == 0, "it hasn't begun"
    loop = threading.Thread(target=lambda: asyncio.run(main()))
    loop.start()
    try:
        wait_until(lambda: watchdog.late_s() > 0.5, 30, "the stall")
        release.set()
        wait_until(lambda: watchdog.late_s() < 0.5, 30, "its end")
    finally:
        release.set()
        ended.set()
        loop.join()
    assert watchdog.late_s() == 0, "it is over"


def test_each_stall_is_logged_once_with_the_blocking_line(caplog: pytest.LogCaptureFixture) -> None:
    late_s = [0.0]
    watch = StallWatchdog(lambda: late_s[0])
    begun, release = threading.Event(), threading.Event()

    def blocks() -> None:
        watch.start()
        begun.set()
        release.wait(60)

    loop = threading.Thread(target=blocks)
    loop.start()
    try:
        assert begun.wait(30)
        watch.stop()
        looks = [WARN_AFTER_S - 1, WARN_AFTER_S + 1, WARN_AFTER_S + 2, 0.0, WARN_AFTER_S]  # the last is another stall
        assert [watch.run_once() for late_s[0] in looks] == [False, True, False, False, True]
    finally:
        release.set()
        loop.join()
    first = caplog.records[0].getMessage()
    assert "blocked for 6 s in wait (threading.py" in first
    assert "must never block" in first


def test_a_process_that_stood_still_names_no_handler(caplog: pytest.LogCaptureFixture) -> None:
    watch = StallWatchdog(lambda: 17.0)
    assert watch.run_once(paused_s=16.0)
    assert "this process was stalled for 16 s" in caplog.text
    assert "handler" not in caplog.text


async def test_a_rebalance_does_not_block_the_loop() -> None:
    bench = LoopBench(flush_timeout_s=60, producer=UNANSWERED)
    bench.poll(0)
    waiting = asyncio.ensure_future(bench.loop.give_up([PLACE]))
    turns = [await asyncio.sleep(0) for _ in range(100)]
    assert len(turns) == 100 and not waiting.done()
    bench.fault.report(PermanentError("enough"))
    assert (await waiting).offsets == {}
