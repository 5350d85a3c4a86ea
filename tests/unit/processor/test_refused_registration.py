"""A wait record that the broker refuses ends the process; nothing at or behind it can be committed (P2, P8)."""

from __future__ import annotations

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, Message, Producer

from processor.assigned_partition import AssignedPartition
from processor.clock_watch import ClockWatch
from processor.committable import CommittableOffsets
from processor.ending import Fault
from processor.entry import Entry
from processor.outbox import Outbox
from processor.registration import Registration
from processor.retry_decision import time_limits
from processor.stats import Stats
from wait_registry.clock import SystemClock
from wait_registry.errors import ConfigurationError, PermanentError
from wait_registry.settings.processor import ProcessorSettings


def message(offset: int) -> Message:
    return Message(
        topic="input", partition=0, offset=offset, key=b"k", value=b"v", timestamp=(TIMESTAMP_CREATE_TIME, 1)
    )


@pytest.mark.guarantee("P2.4")
@pytest.mark.parametrize(
    ("code", "kind"),
    [(KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError), (KafkaError.INVALID_RECORD, PermanentError)],
)
def test_a_refusal_is_reported_and_blocks_the_prefix(code: int, kind: type[Exception]) -> None:
    fault, clock, stats = Fault(), SystemClock(), Stats()
    too_large: list[Entry] = []
    producer = Producer({"bootstrap.servers": ""})  # nothing is sent: the reports come by hand
    registration = Registration(
        producer,
        Outbox(producer, fault),
        "wait",
        4,
        "cluster",
        "group",
        {},
        time_limits(ProcessorSettings()),
        clock,
        ClockWatch(1.0, clock, fault, stats),
        fault,
        stats,
        lambda entry, error: too_large.append(entry),
        lambda entry, error: None,
        lambda entry: None,
    )
    owner, committable = AssignedPartition("input", 0, 0), CommittableOffsets()
    batch = registration.batch([(owner, message(0)), (owner, message(1))])
    committable.append(batch)

    batch.entries[0].delivered(KafkaError(code), message(0))
    batch.entries[1].delivered(None, message(7))

    assert isinstance(fault.error, kind)
    assert "writing wait record" in str(fault.error)
    assert too_large == []
    assert committable.advance() == []
    assert owner.committable == 0
