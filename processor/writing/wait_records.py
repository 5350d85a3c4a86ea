"""Writes wait records, and turns the reports on them into events."""

from __future__ import annotations

from functools import partial

from confluent_kafka import KafkaError, Message

from processor.fault import Fault
from processor.health.clock_watch import ClockWatch
from processor.health.stats import Stats
from processor.intake.delivery import Taken
from processor.intake.subscription import SubscribedTopic
from processor.protocol.effects import Register
from processor.protocol.events import Event, Registered, RegistrationRefused
from processor.protocol.record import Entry, State
from processor.writing.outbox import TOO_LARGE, Headers, Outbox
from wait_registry.clock import Clock
from wait_registry.errors import DataError, PermanentError
from wait_registry.kafka.errors import kafka_failure
from wait_registry.records.wait_partition import wait_partitions


class WaitRecords:
    """Writes them in the order in which they are asked for.

    Args:
        outbox: sends them.
        topic, partitions: the wait topic.
        topics: the consumed topics, by name.
        clock_watch: gets the append time of a wait record, once per event.
    """

    def __init__(
        self,
        outbox: Outbox,
        topic: str,
        partitions: int,
        topics: dict[str, SubscribedTopic],
        clock: Clock,
        clock_watch: ClockWatch,
        fault: Fault,
        stats: Stats,
    ) -> None:
        self._outbox = outbox
        self._topic = topic
        self._partitions = partitions
        self._topics = topics
        self._now_ms = clock.now_ms
        self._clock_watch = clock_watch
        self._fault = fault
        self._stats = stats
        self._acknowledged: list[Entry] = []
        self._refused: list[RegistrationRefused] = []
        self._last: Message | None = None

    def write(self, register: Register) -> None:
        """Write wait records. A second registration goes to the partition of the first."""
        sent_ms, expires_at_ms = self._now_ms(), register.lifetime.expires_at_ms
        delivered = [entry.record for entry in register.entries]
        wait_ids = [taken.wait_id for taken in delivered]
        places = wait_partitions(wait_ids, self._partitions)
        put, topic = self._outbox.put, self._topic
        for entry, taken, wait_id, partition in zip(register.entries, delivered, wait_ids, places, strict=True):
            if taken.wait_partition < 0:
                taken.wait_partition = partition
            taken.sent_ms = sent_ms
            taken.expires_at_ms = expires_at_ms
            try:
                headers = self._headers(taken, expires_at_ms)
            except DataError as error:
                self._refuse(entry, f"the record is more than a wait record can carry: {error}")
                continue
            put(topic, taken.value or b"", wait_id, taken.wait_partition, _Report(self._reported, entry), headers)

    def _headers(self, taken: Taken, expires_at_ms: int) -> Headers:
        source = taken.source
        return self._topics[taken.place[0]].encoder.headers(
            taken.original,
            taken.wait_id,
            expires_at_ms,
            taken.delivery,
            source,
            taken.max_deliveries,
            idempotency_key=None if source is None else taken.idempotency_key,
        )

    def events(self) -> list[Event]:
        """Return what the broker has answered since the last call."""
        events: list[Event] = [*self._refused]
        self._refused.clear()
        if self._acknowledged:
            acknowledged, self._acknowledged = self._acknowledged, []
            now_ms = self._now_ms()
            for entry in acknowledged:
                entry.record.acknowledged_ms = now_ms
            renewed = sum(entry.state is State.RENEWING for entry in acknowledged)
            self._stats.renewed += renewed
            self._stats.registered += len(acknowledged) - renewed
            if self._last is not None:
                self._clock_watch.observe(self._last.timestamp(), acknowledged[-1].record.sent_ms)
            events.append(Registered(acknowledged))
        return events

    def _reported(self, entry: Entry, error: KafkaError | None, message: Message | None) -> None:
        if error is None and message is not None:
            entry.record.wait_offset = message.offset()
            self._last = message
            self._acknowledged.append(entry)
        elif error is not None and message is not None and error.code() in TOO_LARGE:
            report, taken = _Report(self._reported, entry), entry.record
            if report.wanted():
                self._outbox.put_alone(error, message, report, self._headers(taken, taken.expires_at_ms))
        # A record that is registered already can't be refused: its second registration ends the process.
        elif error is not None and error.code() in TOO_LARGE and entry.state is not State.RENEWING:
            self._refuse(
                entry,
                f"the wait record is larger than topic {self._topic} takes: {error.str()} ({error.name()}). Raise its "
                "max.message.bytes (wait.max_message_bytes) if records of this size are to be processed.",
            )
        elif error is not None:
            self._fault.report(kafka_failure(error, f"writing wait record {entry.record.wait_id} to {self._topic}"))

    def _refuse(self, entry: Entry, message: str) -> None:
        self._refused.append(RegistrationRefused(entry, PermanentError(message)))


class _Report(partial[None]):
    """Takes the report on one wait record (called by ``producer.poll``): a function, and the entry as its argument."""

    __slots__ = ()

    def wanted(self) -> bool:
        """Return whether the record is still to be written: its partition wasn't given up meanwhile."""
        return self.args[0].state is not State.DROPPED
