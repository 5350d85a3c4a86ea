"""Wait records are written in order, and the broker's refusals are faults, except for what is too large."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, Message

from processor.health.clock_watch import ClockWatch
from processor.inbox import Inbox
from processor.intake.subscription import subscription
from processor.protocol.effects import Register
from processor.protocol.events import Event, Registered, RegistrationRefused
from processor.protocol.record import Entry, Step
from processor.protocol.results import Lifetime
from processor.writing.outbox import Outbox
from processor.writing.wait_records import WaitRecords
from tests.unit.processor.parts import CLOCK, entries
from wait_registry.errors import ConfigurationError, PermanentError
from wait_registry.settings.topics import WaitTopicSettings
from wait_registry.settings.tree import Settings

LIFETIME = Lifetime(1_900_000_000_000, 0.0, 1e12, 1e12)
TOO_LARGE = [KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE]


class FullProducer:
    """A producer's queue for a few records; ``sent`` are their wait IDs with their partitions and reports."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.sent: list[tuple[str, int, Any]] = []

    def produce(self, topic: str, value: bytes, key: str, partition: int, report: Any, headers: object) -> None:
        if len(self.sent) >= self.room:
            raise BufferError
        self.sent.append((key, partition, report))

    def answer(self, at: int, code: int | None = None, offset: int = 7) -> None:
        """Report the record that was sent as the ``at``-th."""
        message = Message(topic="wait", partition=self.sent[at][1], offset=offset, key=self.sent[at][0])  # type: ignore[arg-type]
        self.sent[at][2](None if code is None else KafkaError(code), message)


class Writing:
    """Wait records on a producer's queue for ``room`` records."""

    def __init__(self, room: int = 100) -> None:
        settings = Settings.model_validate({"processor": {"topics": ["input"], "group": "group"}})
        self.producer, self.inbox = FullProducer(room), Inbox()
        self.fault = self.inbox.fault
        self.outbox = Outbox(self.producer, lambda: self.producer, 1_000_000, self.fault)  # type: ignore[arg-type, return-value]
        watch = ClockWatch(10.0, CLOCK, self.fault, self.inbox.stats)
        wait_topic = WaitTopicSettings(topic="wait", partitions=8)
        topics = subscription(settings, "instance", ())
        self.records = WaitRecords(self.outbox, wait_topic, topics, watch, self.inbox)

    def write(self, *registered: Entry) -> None:
        for entry in registered:
            entry.take(Step.REGISTER)
        self.records.write(Register(registered, LIFETIME))

    def events(self) -> list[Event]:
        self.records.report()
        return list(iter(self.inbox.take, None))

    def sent(self) -> list[str]:
        return [wait_id for wait_id, _, _ in self.producer.sent]


def ids(*registered: Entry) -> list[str]:
    return [entry.record.wait_id for entry in registered]  # type: ignore[attr-defined]


@pytest.mark.guarantee("P2.3")
def test_wait_records_that_waited_for_room_are_sent_before_later_ones() -> None:
    writing, (one, two, three) = Writing(room=1), entries(0, 1, 2)
    writing.write(one, two)
    writing.producer.room = 3
    writing.write(three)
    assert (writing.sent(), writing.outbox.full) == (ids(one), True)
    writing.outbox.send_backlog()
    assert (writing.sent(), writing.outbox.full) == (ids(one, two, three), False)


def test_what_waits_for_room_is_not_sent_for_a_partition_that_has_gone() -> None:
    writing, (one, two, three) = Writing(room=1), entries(0, 1, 2)
    writing.write(one, two, three)
    two.take(Step.DROP)
    writing.producer.room = 3
    writing.outbox.send_backlog()
    assert writing.sent() == ids(one, three)


@pytest.mark.guarantee("P2.4")
@pytest.mark.parametrize(
    ("code", "kind"),
    [(KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError), (KafkaError.INVALID_RECORD, PermanentError)],
)
def test_a_refused_wait_record_is_a_fault_and_blocks_the_commit(code: int, kind: type[Exception]) -> None:
    writing, (one, two) = Writing(), entries(0, 1)
    writing.write(one, two)
    writing.producer.answer(0, code)
    writing.producer.answer(1)
    assert isinstance(writing.fault.error, kind)
    assert "writing wait record" in str(writing.fault.error)
    assert writing.events() == [Registered([two])], "neither registered nor too large: the first stays unsafe"
    two.partition.make_safe(two.number)
    assert two.partition.committable == 0


@pytest.mark.parametrize("code", TOO_LARGE)
def test_a_wait_record_that_is_too_large_is_refused_without_a_fault(code: int) -> None:
    writing, (one, two) = Writing(), entries(0, 1)
    writing.write(one, two)
    writing.producer.answer(1)
    writing.producer.answer(0, code)
    assert writing.events() == [Registered([two])], "no verdict on the first: it is sent again alone"
    writing.producer.answer(2, code)
    (refused,) = writing.events()
    assert isinstance(refused, RegistrationRefused) and refused.entry is one
    assert "is larger than topic wait takes" in str(refused.error)
    assert (writing.fault.error, writing.events()) == (None, [])


@pytest.mark.guarantee("P1.44")
def test_a_wait_record_of_a_refused_batch_is_registered_alone() -> None:
    writing, (one, two, three) = Writing(), entries(0, 1, 2)
    writing.write(one, two, three)
    two.take(Step.DROP)
    for at in range(3):
        writing.producer.answer(at, KafkaError.MSG_SIZE_TOO_LARGE)
    assert writing.sent() == ids(one, two, three, one, three), "the next owner registers the second"
    writing.producer.answer(3)
    writing.producer.answer(4)
    assert (writing.events(), writing.fault.error) == ([Registered([one, three])], None)
    for step in (Step.REGISTERED, Step.RELEASE, Step.OVERDUE):
        one.take(step)
    writing.records.write(Register([one], LIFETIME))
    writing.producer.answer(5, KafkaError.MSG_SIZE_TOO_LARGE)
    writing.producer.answer(6, KafkaError.MSG_SIZE_TOO_LARGE)
    assert "writing wait record" in str(writing.fault.error), "a registered record isn't dead-lettered for its renewal"


def test_a_second_registration_goes_to_the_partition_of_the_first() -> None:
    writing, (one, two) = Writing(), entries(0, 1)
    writing.write(one, two)
    writing.producer.answer(0)
    writing.producer.answer(1)
    writing.events()
    for entry in (one, two):
        entry.take(Step.REGISTERED)
    one.take(Step.OVERDUE)
    writing.records.write(Register([one], LIFETIME))
    assert writing.producer.sent[2][:2] == writing.producer.sent[0][:2]
    writing.producer.answer(2, offset=9)
    writing.events()
    assert (writing.inbox.stats.registered, writing.inbox.stats.renewed) == (2, 1)
    assert one.record.wait_offset == 9  # type: ignore[attr-defined]
