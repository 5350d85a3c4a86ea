"""Registration: every polled record becomes a wait record before anything else happens to it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from processor.assigned_partition import AssignedPartition
from processor.clock_watch import ClockWatch
from processor.committable import RegistrationBatch
from processor.decoding import decode
from processor.ending import Fault
from processor.entry import Entry, EntryState, Lifetime
from processor.outbox import Outbox
from processor.retry_decision import TimeLimits
from processor.stats import Stats
from processor.subscription import SubscribedTopic
from wait_registry.clock import Clock
from wait_registry.errors import DataError, PermanentError
from wait_registry.kafka.errors import kafka_failure
from wait_registry.records.wait_partition import wait_partitions

log = logging.getLogger(__name__)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})


class Registration:
    """Makes entries of consumed messages and publishes their wait records.

    Args:
        producer: sends wait records.
        wait_topic, wait_partitions: where they go.
        cluster_id, group: what ids and wait records need.
        topics: the consumed topics, by name.
        limits: time to live.
        unregistrable: called with a record too large for the wait topic, or for its readers.
        malformed: called with a record that can't be read whole, and why.
        renewed: called with a record whose second registration is acknowledged.
    """

    def __init__(
        self,
        producer: Producer,
        outbox: Outbox,
        wait_topic: str,
        wait_partitions: int,
        cluster_id: str,
        group: str,
        topics: dict[str, SubscribedTopic],
        limits: TimeLimits,
        clock: Clock,
        clock_watch: ClockWatch,
        fault: Fault,
        stats: Stats,
        unregistrable: Callable[[Entry, KafkaError | DataError], None],
        malformed: Callable[[Entry, PermanentError], None],
        renewed: Callable[[Entry], None],
    ) -> None:
        self._producer = producer
        self._outbox = outbox
        self._wait_topic = wait_topic
        self._wait_partitions = wait_partitions
        self._cluster_id = cluster_id
        self._group = group
        self._topics = topics
        self._limits = limits
        self._clock = clock
        self._clock_watch = clock_watch
        self._fault = fault
        self._stats = stats
        self._unregistrable = unregistrable
        self.malformed = malformed
        self._renewed = renewed
        self._unreadable: dict[Entry, PermanentError] = {}
        self.renewing: set[Entry] = set()

    def batch(self, messages: Iterable[tuple[AssignedPartition, Message]]) -> RegistrationBatch:
        """Make the batch of what one ``consume()`` gave, with each message's partition; nothing is sent yet."""
        lifetime = self._lifetime()
        entries: list[Entry] = []
        ends: dict[AssignedPartition, int] = {}
        for owner, message in messages:
            entry = self._entry(owner, message, lifetime)
            entries.append(entry)
            ends[owner] = entry.offset + 1
        partitions = wait_partitions([entry.wait_id for entry in entries], self._wait_partitions)
        for entry, partition in zip(entries, partitions, strict=True):
            entry.wait_partition = partition
        return RegistrationBatch(entries, ends, self._clock.now_ms(), self.refused, self._completed)

    def publish(self, batch: RegistrationBatch) -> bool:
        """Send the wait records of a batch, as far as the producer's queue has room.

        Returns:
            Whether all are sent; else call it again later, before anything else is consumed.
        """
        produce, topic, topics = self._producer.produce, self._wait_topic, self._topics
        entries, dropped = batch.entries, EntryState.DROPPED
        while batch.published < len(entries):
            entry = entries[batch.published]
            if entry.state is dropped:
                self._unreadable.pop(entry, None)
                batch.acknowledge()
            elif self._unreadable and entry in self._unreadable:
                self.malformed(entry, self._unreadable.pop(entry))
            else:
                original = entry.original
                try:
                    headers = topics[entry.owner.topic].encoder.headers(
                        original, entry.wait_id, entry.lifetime.expires_at_ms, entry.delivery, entry.source
                    )
                    produce(
                        topic,
                        original.value or b"",
                        entry.wait_id,
                        entry.wait_partition,
                        entry.delivered,
                        headers=headers,
                    )
                except BufferError:
                    return False
                except KafkaException as error:
                    self.refused(entry, error.args[0])
                except DataError as error:
                    self._unregistrable(entry, error)
            batch.published += 1
        return True

    def renew(self, entry: Entry) -> None:
        """Register a record again that has too little time left: same id, same partition, new expiry."""
        entry.state = EntryState.RENEWING
        entry.lifetime = self._lifetime()
        self.renewing.add(entry)
        original = entry.original
        headers = self._topics[entry.owner.topic].encoder.headers(
            original, entry.wait_id, entry.lifetime.expires_at_ms, entry.delivery, entry.source
        )

        def acknowledged(message: Message) -> None:
            self.renewing.discard(entry)
            self._stats.renewed += 1
            if entry.state is EntryState.RENEWING:
                entry.wait_offset = message.offset()
                self._renewed(entry)

        receipt = self._outbox.receipt(f"the renewed registration {entry.wait_id}", self._wait_topic, acknowledged)
        self._outbox.send(receipt, entry.wait_partition, entry.wait_id, original.value or b"", headers)

    def _entry(self, owner: AssignedPartition, message: Message, lifetime: Lifetime) -> Entry:
        taken, identifier, unreadable = decode(message, owner.topic, owner.partition, self._group, self._cluster_id)
        original, source, delivery = taken
        size = (len(original.key) if original.key else 0) + (len(original.value) if original.value else 0)
        if original.headers:
            size += sum(len(name) + (len(content) if content else 0) for name, content in original.headers)
        entry = Entry(original, source, delivery, identifier, owner, message.offset(), size, lifetime)
        if unreadable is not None:
            self._unreadable[entry] = unreadable
        return entry

    def _lifetime(self) -> Lifetime:
        limits, now_s = self._limits, self._clock.monotonic()
        expires_at_ms = self._clock.now_ms() + round(limits.ttl_s * 1000)
        expires_at = _EPOCH + timedelta(milliseconds=expires_at_ms)
        return Lifetime(expires_at_ms, expires_at, now_s + limits.ttl_s, limits.start_by_s(now_s), now_s)

    def refused(self, entry: Entry, error: KafkaError) -> None:
        """Dead-letter a record that is too large; any other refusal ends the process."""
        if error.code() in _TOO_LARGE:
            self._unregistrable(entry, error)
        else:
            self._fault.report(kafka_failure(error, f"writing wait record {entry.wait_id} to {self._wait_topic}"))

    def _completed(self, batch: RegistrationBatch, message: Message) -> None:
        batch.acknowledged_ms = self._clock.now_ms()
        self._clock_watch.observe(message.timestamp(), batch.sent_ms)
