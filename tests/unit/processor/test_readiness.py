"""What makes a processor not ready, and the reasons that it answers (P8)."""

from __future__ import annotations

import asyncio

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from processor.service.ending import Fault
from processor.service.readiness import LOOP_BLOCKED_S, UNACKNOWLEDGED_S, not_ready_reasons
from processor.settlement.outbox import ANY_PARTITION, Outbox
from tests.unit.processor.pipeline_bench import PipelineBench
from wait_registry.settings.processor import AssignmentStrategy

GONE = [TopicPartition("input", 0)]
NO_PARTITIONS = "no partitions assigned yet"


def test_a_process_with_a_blocked_loop_is_not_ready() -> None:
    [reason] = not_ready_reasons(False, True, 0, 50, 0, LOOP_BLOCKED_S + 5)
    assert "blocked for 20 s" in reason
    assert not_ready_reasons(False, True, 0, 50, 0, LOOP_BLOCKED_S - 5) == [], (
        "a flush within a rebalance is not a blocked loop"
    )


def test_a_blocked_loop_is_not_blamed_on_the_broker() -> None:
    waited_s = UNACKNOWLEDGED_S + 10
    [reason] = not_ready_reasons(False, True, 0, 50, 0, waited_s - 1, waited_s, waited_s)
    assert "broker unavailable" not in reason
    reasons = not_ready_reasons(False, True, 0, 50, 0, 5, waited_s, waited_s)
    assert [reason.partition(":")[2] for reason in reasons] == [" broker unavailable or too few in-sync replicas"] * 2


def test_a_process_without_a_free_slot_is_not_ready() -> None:
    [reason] = not_ready_reasons(False, True, 50, 50)
    assert "all 50 slots are blocked" in reason
    assert not_ready_reasons(False, True, 49, 50) == []


def test_unacknowledged_wait_records_mean_not_ready() -> None:
    assert not_ready_reasons(False, True, 0, 50, registering_s=UNACKNOWLEDGED_S) == []
    [reason] = not_ready_reasons(False, True, 0, 50, registering_s=UNACKNOWLEDGED_S + 1)
    assert reason.startswith("wait records unacknowledged for 16 s")


def test_unacknowledged_dead_letters_mean_not_ready() -> None:
    now_s = [100.0]
    # librdkafka's own broker: it answers as soon as it is asked.
    producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1})
    outbox = Outbox(producer, Fault(), lambda: now_s[0])
    assert outbox.waiting_s() == 0, "nothing has been sent"
    outbox.expect(1)
    outbox.put("topic", None, b"key", ANY_PARTITION, outbox.receipt("a letter", "topic", lambda message: None), [])
    now_s[0] += UNACKNOWLEDGED_S + 5
    [reason] = not_ready_reasons(False, True, 0, 50, settling_s=outbox.waiting_s())
    assert reason.startswith("tombstones or dead letters unacknowledged for 20 s")
    while outbox.unacknowledged:
        producer.poll(0.1)
    assert not_ready_reasons(False, True, 0, 50, settling_s=outbox.waiting_s()) == []


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
    bench = PipelineBench(assignment_strategy=strategy)
    bench.context.membership.assigned("own")
    assert NO_PARTITIONS not in bench.pipeline.not_ready()
    await asyncio.to_thread(getattr(bench.group_consumer, callback), bench.group_consumer.consumer, GONE)
    assert bench.fault.error is None
    assert not bench.group_consumer.assigned
    assert (NO_PARTITIONS not in bench.pipeline.not_ready()) is ready


@pytest.mark.guarantee("P8.15")
async def test_partitions_lost_while_the_client_closes_are_no_fault() -> None:
    """Seen in chaos (seed 6153): the member was unknown to the group when it left, and the process ended with 1."""

    class Closing:
        """A client within its close: librdkafka answers so to each question about the assignment."""

        def assignment(self) -> None:
            raise KafkaException(KafkaError(KafkaError._DESTROY))

    bench = PipelineBench(assignment_strategy=AssignmentStrategy.COOPERATIVE_STICKY)
    await asyncio.to_thread(bench.group_consumer.on_lost, Closing(), GONE)  # type: ignore[arg-type]
    assert bench.fault.error is None
    assert not bench.group_consumer.assigned
