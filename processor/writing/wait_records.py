"""Writes wait records, and turns the reports on them into events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import KafkaError, Message

from processor.health.clock_watch import ClockWatch
from processor.inbox import Inbox
from processor.intake.delivery import Delivery
from processor.intake.subscription import SubscribedTopic
from processor.protocol.effects import Register
from processor.protocol.events import Registered, RegistrationRefused
from processor.protocol.record import Entry, State
from processor.writing.outbox import TOO_LARGE, Headers, Outbox
from wait_registry.errors import DataError, PermanentError
from wait_registry.kafka.errors import kafka_failure
from wait_registry.records.wait_partition import wait_partitions
from wait_registry.records.wait_record import LaterDelivery
from wait_registry.settings.topics import WaitTopicSettings


@dataclass(slots=True)
class WaitRecords:
    """Writes them in the order in which they are asked for.

    Args:
        outbox: sends them.
        wait_topic: its name and number of partitions.
        topics: the consumed topics, by name.
        clock_watch: gets the append time of a wait record, once per event.
        inbox: gets what the broker answers, and a refusal that ends the process.
    """

    outbox: Outbox
    wait_topic: WaitTopicSettings
    topics: Mapping[str, SubscribedTopic]
    clock_watch: ClockWatch
    inbox: Inbox
    _acknowledged: list[Entry] = field(default_factory=list, init=False)
    _offsets: list[int | None] = field(default_factory=list, init=False)
    _last: Message | None = field(default=None, init=False)

    def write(self, register: Register) -> None:
        """Write wait records. A second registration goes to the partition of the first."""
        sent_ms, expires_at_ms = self.clock_watch.now_ms(), register.lifetime.expires_at_ms
        delivered = [entry.record for entry in register.entries]
        wait_ids = [record.wait_id for record in delivered]
        places = wait_partitions(wait_ids, self.wait_topic.partitions)
        put, topic = self.outbox.put, self.wait_topic.topic
        Delivery.register(delivered, places, sent_ms, expires_at_ms)
        for entry, record, wait_id in zip(register.entries, delivered, wait_ids, strict=True):
            try:
                headers = self._headers(record, expires_at_ms)
            except DataError as error:
                self._refuse(entry, f"the record is more than a wait record can carry: {error}")
                continue
            put(topic, record.value or b"", wait_id, record.wait_partition, _Report(self._reported, entry), headers)

    def _headers(self, record: Delivery, expires_at_ms: int) -> Headers:
        encode, first = self.topics[record.place[0]].encoder.headers, record.original
        if record.source is None:
            return encode(first, record.wait_id, expires_at_ms, record.delivery)
        later = LaterDelivery(record.source, record.max_deliveries, record.idempotency_key)
        return encode(first, record.wait_id, expires_at_ms, record.delivery, later)

    def report(self) -> None:
        """Put what the broker has acknowledged since the last call into the inbox."""
        if not self._acknowledged:
            return
        acknowledged, self._acknowledged = self._acknowledged, []
        offsets, self._offsets = self._offsets, []
        Delivery.registered([entry.record for entry in acknowledged], offsets, self.clock_watch.now_ms())
        renewed = sum(entry.state is State.RENEWING for entry in acknowledged)
        self.inbox.stats.count_registered(len(acknowledged), renewed)
        if self._last is not None:
            self.clock_watch.observe(self._last.timestamp(), acknowledged[-1].record.sent_ms)
        self.inbox.put(Registered(acknowledged))

    def _reported(self, entry: Entry, error: KafkaError | None, message: Message | None) -> None:
        if error is None and message is not None:
            self._offsets.append(message.offset())
            self._last = message
            self._acknowledged.append(entry)
        elif error is not None and message is not None and error.code() in TOO_LARGE:
            report, record = _Report(self._reported, entry), entry.record
            if report.wanted():
                self.outbox.put_alone(error, message, report, self._headers(record, record.expires_at_ms))
        # A record that is registered already can't be refused: its second registration ends the process.
        elif error is not None and error.code() in TOO_LARGE and entry.state is not State.RENEWING:
            self._refuse(
                entry,
                f"the wait record is larger than topic {self.wait_topic.topic} takes: {error.str()} ({error.name()}). "
                "Raise its max.message.bytes (wait.max_message_bytes) if records of this size are to be processed.",
            )
        elif error is not None:
            what = f"writing wait record {entry.record.wait_id} to {self.wait_topic.topic}"
            self.inbox.fault.report(kafka_failure(error, what))

    def _refuse(self, entry: Entry, message: str) -> None:
        self.inbox.put(RegistrationRefused(entry, PermanentError(message)))


class _Report(partial[None]):
    """Takes the report on one wait record (called by ``producer.poll``): a function, and the entry as its argument."""

    __slots__ = ()

    def wanted(self) -> bool:
        """Return whether the record is still to be written: its partition wasn't given up meanwhile."""
        return self.args[0].state is not State.DROPPED
