"""The poll loop: delivery reports, committable offsets, polling, registration, commits."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from processor.assigned_partition import AssignedPartition
from processor.commits import Commits
from processor.committable import CommittableOffsets, RegistrationBatch
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.entry import Entry, EntryState
from processor.group_consumer import GroupConsumer
from processor.outbox import Outbox
from processor.prefetch import Outstanding, Pausing, Prefetch
from processor.rebalance import Rebalance
from processor.registration import Registration
from processor.stats import Stats
from wait_registry.clock import Clock
from wait_registry.kafka.errors import kafka_failure

log = logging.getLogger(__name__)

NOTHING_CAME_S = 0.001
IDLE_S = 0.25
HOUSEKEEPING_S = 0.25
FLUSH_STEP_S = 0.01


class PollLoop:
    """Moves records from the consumer through registration to the workers.

    Built in two steps, since consumer and poll loop call each other: call `attach` before the first iteration.

    Args:
        producer: polled here and nowhere else while the loop runs.
        flush_timeout_s: limit of the flush within a rebalance callback, s.
    """

    def __init__(
        self,
        producer: Producer,
        outbox: Outbox,
        registration: Registration,
        dispatcher: Dispatcher,
        committable: CommittableOffsets,
        outstanding: Outstanding,
        prefetch: Prefetch,
        clock: Clock,
        fault: Fault,
        stats: Stats,
        flush_timeout_s: float,
    ) -> None:
        self._producer = producer
        self._outbox = outbox
        self._registration = registration
        self._dispatcher = dispatcher
        self._committable = committable
        self._outstanding = outstanding
        self.prefetch = prefetch
        self._monotonic = clock.monotonic
        self._fault = fault
        self._stats = stats
        self._flush_timeout_s = flush_timeout_s
        self.pausing = Pausing()
        # Records that a poll without capacity returned: not registered, and dropped when their partition is released.
        self.buffered: list[tuple[AssignedPartition, Message]] = []
        self._publishing: RegistrationBatch | None = None
        self._last_housekeeping_s = 0.0
        self._resume = False
        # Records of a warm-up are registered, and their commit couldn't be requested at once.
        self._warm_up_waits = False

    def attach(self, group_consumer: GroupConsumer, commits: Commits, rebalance: Rebalance) -> None:
        """Connect the poll loop with its consumer."""
        self._group_consumer = group_consumer
        self.commits = commits
        self.rebalance = rebalance

    # ---- the loop

    async def iterate(self) -> None:
        """Do what is due, then yield to the handlers; if nothing is due, wait for a record or a moment.

        Raises:
            WaitRegistryError: a callback's error, or a fatal error of a client; the process must end.
        """
        try:
            await self._iterate()
        except KafkaException as error:
            raise kafka_failure(error, "consuming") from error

    async def _iterate(self) -> None:
        self._producer.poll(0)
        self._fault.raise_if_any()
        self._outbox.send_backlog()
        self._advance()
        now_s = self._monotonic()
        taken = self.consume(now_s)
        if self.commits.due(now_s) or (self._warm_up_waits and self.commits.idle):
            self._warm_up_waits = False
            self.commits.commit(self._group_consumer.assigned.values())
        if now_s - self._last_housekeeping_s >= HOUSEKEEPING_S:
            self._last_housekeeping_s = now_s
            self.run_housekeeping(now_s)
        if taken:
            await asyncio.sleep(0)
        elif self._acknowledged and not self.buffered and not self.pausing.paused and self.capacity() > 0:
            self.register(await self._group_consumer.wait(IDLE_S))
        else:
            await asyncio.sleep(NOTHING_CAME_S)

    def run_housekeeping(self, now_s: float) -> None:
        """Do what is due a few times per second."""
        self.prefetch.observe(now_s, self._outstanding.finished)
        self._dispatcher.renew_overdue()
        self._renew_held(now_s)
        self._group_consumer.read_ends()
        if self.pausing.paused:
            self._group_consumer.ask_ends(now_s)

    def _renew_held(self, now_s: float) -> None:
        # A warm-up lasts for as long as no commit is confirmed.
        for owner in self._group_consumer.assigned.values():
            if not owner.warm_up.is_over:
                for entry in owner.warm_up.remove(lambda entry: entry.lifetime.start_by_s < now_s):
                    self._registration.renew(entry)

    def iterate_without_polling(self) -> None:
        """Do what is due for the records polled so far, for the drain."""
        self._producer.poll(0)
        self._fault.raise_if_any()
        self._outbox.send_backlog()
        self._publish()
        self._advance()
        self._dispatcher.renew_overdue()

    def limit_flush(self, limit_s: float) -> None:
        """Limit the flush of the last rebalance, s."""
        self._flush_timeout_s = min(self._flush_timeout_s, limit_s)

    @property
    def _acknowledged(self) -> bool:
        """Whether no wait record, tombstone or dead letter is unacknowledged."""
        return not self._committable and self._publishing is None and not self._outbox.unacknowledged

    def registered(self) -> bool:
        """Return whether every polled record is registered, or safe in another way."""
        return not self._committable and self._publishing is None

    def capacity(self) -> int:
        """Return how many records may be consumed now."""
        if self._publishing is not None or self._outbox.full:
            return 0
        return self.prefetch.capacity(self._outstanding.records, self._outstanding.size)

    def consume(self, now_s: float) -> bool:
        """Consume and register as much as there is room for; return whether anything was registered."""
        self._publish()
        capacity = self.capacity()
        if self._resume or self.pausing.resume_due(capacity, self.prefetch.capacity(0, 0)):
            self._resume = self.pausing.paused = False
            self._group_consumer.resume()
        if capacity <= 0:
            self.poll_without_room(now_s)
            return False
        if self.pausing.paused:
            self.poll_without_room(now_s)
        elif len(self.buffered) < capacity:
            self.pausing.polled(now_s)
            self._buffer(capacity - len(self.buffered))
        taken, self.buffered = self.buffered[:capacity], self.buffered[capacity:]
        return self.register(taken)

    def poll_without_room(self, now_s: float) -> None:
        """Poll to stay in the group and to take part in rebalances."""
        if not self.pausing.poll_due(now_s):
            return
        self.pausing.polled(now_s)
        self._buffer(1)
        if self.pausing.pause_due(len(self.buffered)):
            self.pausing.paused = True
            self._group_consumer.pause()

    def _buffer(self, count: int) -> None:
        # In two steps: the poll may release partitions, and then replaces the list by one without their records.
        taken = self._group_consumer.take(count)
        self.buffered += taken

    def register(self, taken: list[tuple[AssignedPartition, Message]]) -> bool:
        """Register records that were consumed; return whether they were taken, otherwise they are buffered."""
        if not taken:
            return False
        if self._publishing is not None:
            self.buffered += taken
            return False
        batch = self._registration.batch(taken)
        size = sum(entry.size for entry in batch.entries)
        self._outstanding.add(len(taken), size)
        self.prefetch.observe_size(len(taken), size)
        self._stats.consumed.update(owner.topic for owner, _ in taken)
        self._committable.append(batch)
        self._publishing = batch
        self._publish()
        return True

    def _publish(self) -> None:
        if self._publishing is not None and self._registration.publish(self._publishing):
            self._publishing = None

    def _advance(self) -> None:
        entries = self._committable.advance()
        if entries:
            self._start_or_hold(entries)

    def _start_or_hold(self, entries: Iterable[Entry]) -> None:
        """Give registered records to the workers, or hold them for the warm-up of their assignment."""
        ready: list[Entry] = []
        held = 0
        registering = EntryState.REGISTERING
        for entry in entries:
            if entry.state is not registering:
                continue  # dropped by a rebalance, or dead-lettered as unregistrable
            warm_up = entry.owner.warm_up
            if warm_up.is_over:
                ready.append(entry)
            else:
                entry.state = EntryState.HELD
                warm_up.hold(entry.offset, entry)
                held += 1
        self._stats.registered += len(ready) + held
        self._dispatcher.add(ready)
        if held and self.commits.idle:
            self._commit_warm_up()

    def _commit_warm_up(self) -> None:
        """Commit a warm-up without waiting for the interval; in the next iteration if the consumer is polling."""
        if self._group_consumer.polling:
            self._warm_up_waits = True
        else:
            self.commits.commit(self._group_consumer.assigned.values())

    # ---- the consumer's callbacks

    def assigned(self, owners: list[AssignedPartition]) -> None:
        """Start new partitions, each with its warm-up."""
        self._stats.rebalances["assigned"] += 1
        # New partitions aren't paused, and librdkafka may remember a pause from an earlier assignment of them.
        self._resume = True

    def revoked(self, owners: list[AssignedPartition]) -> dict[AssignedPartition, int]:
        """Flush the unacknowledged wait records, then release the partitions."""
        self._stats.rebalances["revoked"] += 1
        if not owners:
            return {}
        self._forget(owners)
        if self._fault.error is not None:
            # The offsets may rely on what has failed: commit nothing more.
            self.rebalance.lost(owners)
            return {}
        self.flush(owners)
        return self.rebalance.revoked(owners)

    def committed_last(self, targets: dict[AssignedPartition, int], error: KafkaError | None) -> None:
        """Take the answer of the commit at the end of an assignment."""
        self.rebalance.committed_last(targets, error)

    def lost(self, owners: list[AssignedPartition]) -> None:
        """Release partitions that are lost already."""
        self._stats.rebalances["lost"] += 1
        log.warning("partitions lost: %s", ", ".join(map(repr, owners)))
        self._forget(owners)
        self.rebalance.lost(owners)

    def commit_answered(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Take the answer of a commit; records of a warm-up that waited for it start."""
        self.commits.answered(error, partitions)
        # A warm-up that was registered while the commit was in flight needn't wait for the interval.
        owners = self._group_consumer.assigned.values()
        if error is None and self.commits.idle and any(owner.warm_up.held() for owner in owners):
            self._commit_warm_up()

    def confirmed(self, owner: AssignedPartition) -> None:
        """Start the records of a warm-up that the commit covers."""
        self._dispatcher.add(owner.warm_up.confirm(owner.confirmed))

    def renewed(self, entry: Entry) -> None:
        """Start a renewed record next, or hold it again if its partition is in its warm-up."""
        warm_up = entry.owner.warm_up
        if warm_up.is_over or entry.offset < entry.owner.confirmed:
            self._dispatcher.add_first(entry)
        else:
            entry.state = EntryState.HELD
            warm_up.hold(entry.offset, entry)

    def _forget(self, owners: list[AssignedPartition]) -> None:
        self.buffered = [(owner, message) for owner, message in self.buffered if owner not in owners]

    def flush(self, owners: list[AssignedPartition]) -> None:
        """Wait for the acknowledgments of wait records and renewals, up to the limit of a rebalance."""
        # Blocking on purpose: the rebalance waits for this callback, and no handler may start meanwhile.
        end_s = time.monotonic() + self._flush_timeout_s
        while (not self.registered() or self._renewing(owners)) and self._fault.error is None:
            if time.monotonic() >= end_s:
                log.warning(
                    "%d batches of wait records and %d renewals not acknowledged in time for the rebalance",
                    len(self._committable),
                    self._renewing(owners),
                )
                return
            self._outbox.send_backlog()
            self._publish()
            self._producer.poll(FLUSH_STEP_S)
            self._advance()

    def _renewing(self, owners: list[AssignedPartition]) -> int:
        return sum(entry.owner in owners for entry in self._registration.renewing)
