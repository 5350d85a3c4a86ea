"""Strategy ``batch``: poll, run all, commit; for comparison, and for who needs no more.

One slow record holds up its whole batch. There is no registry: offsets are committed after the work, so a crash
delivers the batch again, to every handler in it. Nothing expires either: ``Record.expires_at`` is when it would.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from processor.assigned_partition import AssignedPartition
from processor.attempts import Failed, Result
from processor.commits import REBALANCING
from processor.consumption import Consumption
from processor.dead_letters import DeadLetters, Delivery
from processor.decoding import decode
from processor.dispatch import STOP_LIMIT_S
from processor.exposition import partition_readings
from processor.handlers.shortage import ShortageError
from processor.readiness import not_ready_reasons
from processor.stats import Stats
from processor.strategies.protocol import Strategy, StrategyContext
from processor.traces import Traces
from wait_registry.handler import Discard, Record
from wait_registry.kafka.errors import is_transient, kafka_failure
from wait_registry.logs import record_fields
from wait_registry.records.consumed import Consumed
from wait_registry.records.dead_letter import Reason
from wait_registry.records.tombstone import Outcome
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import Reading
from wait_registry.telemetry.tracing import RecordTrace

log = logging.getLogger(__name__)

WAIT_S = 0.1
SERVE_EVERY_S = 0.05
ACKNOWLEDGMENT_STEP_S = 0.001
RETRY_COMMIT_S = 0.5

# A batch that takes longer shows the group that this member is alive.
POLL_AFTER_S = 30.0
MAX_POLL_INTERVAL_MS = 300_000

Taken: TypeAlias = tuple[AssignedPartition, Message]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def build(context: StrategyContext) -> Strategy:
    """Build the strategy."""
    return BatchStrategy(context)


class BatchStrategy:
    """Runs at most N records at once, all of one poll, and commits when each has its outcome."""

    def __init__(self, context: StrategyContext) -> None:
        processor = context.settings.processor
        self._context = context
        self._size = processor.max_in_flight
        self._group = processor.group
        self._letters = DeadLetters(
            context.outbox, context.topics, processor.group, context.instance, context.clock, context.stats
        )
        self._consumption = Consumption(
            context.settings,
            self,
            context.start_offsets,
            context.commit_metadata,
            context.link,
            context.membership,
            context.fault,
        )
        self._traces = Traces.of(context.tracer, processor.group, context.instance)
        self._poll_after_s = poll_after_s(context.settings.kafka.librdkafka)
        self._early: list[Taken] = []
        # Finished and not committed yet, and when that is tried again after a rebalance has refused it.
        self._finished: dict[AssignedPartition, int] = {}
        self._commit_at_s = -math.inf
        # Whether all that is assigned is paused, and whether any of it may be.
        self._paused = self._resume = False
        self._running = 0
        self._draining = False
        self._end_s = math.inf

    async def run(self) -> None:
        """Work batch by batch; a batch that is running when the stop comes is finished within the drain's limit."""
        context = self._context
        self._consumption.subscribe(context.topics)
        try:
            while not context.stop.is_set() and not self._worked_off():
                self._serve()
                taken = await self._next()
                if taken and await self._work_off(taken):
                    self._finished |= {owner: message.offset() + 1 for owner, message in taken}
                    self._commit_at_s = -math.inf
                if self._context.clock.monotonic() >= self._commit_at_s:
                    await self._commit()
        finally:
            self._draining = True
            await self._consumption.close(self._left_s())

    def _left_s(self) -> float:
        """Return how much of the drain's limit is left, s; it begins with the first question."""
        now_s = self._context.clock.monotonic()
        self._end_s = min(self._end_s, now_s + self._context.settings.processor.drain_timeout_s)
        return self._end_s - now_s

    def _worked_off(self) -> bool:
        once = self._context.once
        return (
            once is not None
            and self._context.membership.joined
            and not self._early
            and not self._uncommitted()
            and once.reached(self._consumption.assigned)
        )

    async def _next(self) -> list[Taken]:
        try:
            return await self._fetch()
        except KafkaException as error:
            raise kafka_failure(error, "consuming") from error

    async def _fetch(self) -> list[Taken]:
        if self._resume:
            self._resume = self._paused = False
            self._consumption.resume()
        self._take(self._size - len(self._early))
        if not self._early:
            came = await self._consumption.wait(WAIT_S)
            self._early += came
            self._take(self._size - 1 if came else 0)
        self._consumption.read_ends()
        taken, self._early = self._early[: self._size], self._early[self._size :]
        return taken

    def _take(self, count: int) -> None:
        # In two steps: the poll may give partitions up, and then replaces the list by one without their records.
        came = self._consumption.take(count) if count > 0 else []
        self._early += came

    def _serve(self) -> None:
        self._context.producer.poll(0)
        self._context.fault.raise_if_any()
        self._context.outbox.send_backlog()

    async def _work_off(self, taken: list[Taken]) -> bool:
        """Run a batch until every record has its outcome; False when the drain's limit cut it short."""
        clock, stop = self._context.clock, self._context.stop
        started_s = clock.monotonic()
        work = asyncio.gather(*(self._run_one(owner, message) for owner, message in taken))
        while not work.done() or self._context.outbox.unacknowledged:
            self._serve()
            now_s = clock.monotonic()
            if stop.is_set() and self._left_s() <= 0:
                log.warning("drain over its limit: the batch of %d will be delivered again", len(taken))
                work.cancel()
                _, refusing = await asyncio.wait([work], timeout=STOP_LIMIT_S)
                if refusing:
                    log.warning("handlers don't end although they were cancelled: left behind")
                return False
            if now_s - started_s >= self._poll_after_s:
                self._poll_paused()
            await asyncio.wait([work], timeout=SERVE_EVERY_S if not work.done() else None)
            if work.done():
                await asyncio.sleep(ACKNOWLEDGMENT_STEP_S)
        work.result()
        # What was refused without a delivery report: nothing may be committed past it.
        self._context.fault.raise_if_any()
        return True

    def _poll_paused(self) -> None:
        """Poll for what isn't records: the group's news, and the client's."""
        if not self._paused:
            self._consumption.pause()
        self._paused = self._resume = True
        self._take(1)

    async def _run_one(self, owner: AssignedPartition, message: Message) -> None:
        context = self._context
        context.stats.consumed[owner.topic] += 1
        taken, identifier, unreadable = decode(message, owner.topic, owner.partition, self._group, context.cluster_id)
        record = self._record(taken, identifier)
        trace = self._trace(owner, message, taken, identifier)
        if unreadable is not None:
            self._dead_letter(owner, taken, record, Reason.MALFORMED, unreadable, trace)
            return
        task = asyncio.current_task()
        assert task is not None
        started_s = context.clock.monotonic()
        if context.attempts.slots is not None:
            await context.attempts.slots.take()
        deadline = context.watchdog.watch(task)
        deadline.started_s = started_s
        self._running += 1
        try:
            # No registration expires meanwhile: every try may take place.
            result = await context.attempts.run(record, math.inf, deadline, trace)
        except (asyncio.CancelledError, ShortageError):
            if trace is not None:
                trace.left()
            raise
        finally:
            self._running -= 1
            context.watchdog.forget(deadline)
        self._settle(owner, taken, record, result, context.clock.monotonic() - started_s, trace)

    def _trace(self, owner: AssignedPartition, message: Message, taken: Consumed, wait_id: str) -> RecordTrace | None:
        if self._traces is None:
            return None
        now_ms = self._context.clock.now_ms()
        return self._traces.begin_unregistered(owner, message.offset(), taken, wait_id, now_ms)

    def _record(self, taken: Consumed, identifier: str) -> Record:
        expires_at = _EPOCH + timedelta(seconds=self._context.clock.now_ms() / 1000 + self._context.limits.ttl_s)
        original = taken.original
        return Record(
            original.topic,
            original.partition,
            original.offset,
            original.timestamp_ms,
            original.key,
            original.value,
            original.headers,
            taken.delivery,
            identifier,
            self._group,
            expires_at,
        )

    def _settle(
        self,
        owner: AssignedPartition,
        taken: Consumed,
        record: Record,
        result: Result,
        elapsed_s: float,
        trace: RecordTrace | None,
    ) -> None:
        stats = self._context.stats
        if isinstance(result, Failed):
            stats.observe(Outcome.DEAD_LETTERED, elapsed_s)
            self._dead_letter(owner, taken, record, Reason.FAILED, result.error, trace, result.ours)
            return
        outcome = Outcome.DONE
        if isinstance(result, Discard):
            outcome = Outcome.DISCARDED
            fields = record_fields(
                wait_id=record.wait_id, topic=record.topic, partition=record.partition, offset=record.offset
            )
            log.info("discarded: %s", result.reason, extra=fields)
        stats.observe(outcome, elapsed_s)
        _count(stats, outcome, trace)

    def _dead_letter(
        self,
        owner: AssignedPartition,
        taken: Consumed,
        record: Record,
        reason: Reason,
        error: BaseException,
        trace: RecordTrace | None,
        ours: bool = False,
    ) -> None:
        stats = self._context.stats
        delivery = Delivery(taken.original, owner.topic, record.wait_id, record.delivery, None, None)
        self._letters.send(delivery, reason, error, lambda: _count(stats, Outcome.DEAD_LETTERED, trace, reason), ours)

    async def _commit(self) -> None:
        """Commit what is finished, through an outage; what a rebalance refuses and leaves ours, a little later."""
        stats = self._context.stats
        while ours := self._uncommitted():
            self._context.fault.raise_if_any()
            try:
                await asyncio.to_thread(self._consumption.commit_now, ours)
            except KafkaException as raised:
                error = raised.args[0]
                stats.commits["failed"] += 1
                log.warning("commit of a batch failed: %s (%s)", error.str(), error.name())
                if error.code() in REBALANCING or (is_transient(error) and self._context.stop.is_set()):
                    # The consumer has to be polled until then.
                    self._commit_at_s = self._context.clock.monotonic() + RETRY_COMMIT_S
                    return
                if not is_transient(error):
                    raise kafka_failure(error, "committing offsets") from raised
                self._serve()
                self._poll_paused()
                await asyncio.sleep(RETRY_COMMIT_S)
            else:
                stats.committed(self._context.clock.now_ms())
                for owner, target in ours.items():
                    owner.prefix = owner.requested = owner.confirmed = target
                self._finished.clear()
                return

    def _uncommitted(self) -> dict[AssignedPartition, int]:
        """Return what is finished, not committed, and still ours: the next owner of the rest gets it again."""
        assigned = self._consumption.assigned
        ours = {
            owner: at for owner, at in self._finished.items() if assigned.get((owner.topic, owner.partition)) is owner
        }
        self._finished = ours
        return ours

    # ---- what the consumer tells

    def assigned(self, owners: list[AssignedPartition]) -> None:
        """Have new partitions paused like the others while a batch takes long; else the next poll brings records."""
        self._context.stats.rebalances["assigned"] += 1
        self._paused = False
        # librdkafka may remember a pause from an earlier assignment of them.
        self._resume = True

    def revoked(self, owners: list[AssignedPartition]) -> dict[AssignedPartition, int]:
        """Forget records fetched early, and have what is finished committed; what runs is the next owner's too."""
        self._context.stats.rebalances["revoked"] += 1
        self._forget(owners)
        return {owner: self._finished.pop(owner) for owner in owners if owner in self._finished}

    def lost(self, owners: list[AssignedPartition]) -> None:
        """Forget records fetched early."""
        self._context.stats.rebalances["lost"] += 1
        self._forget(owners)

    def committed_last(self, targets: dict[AssignedPartition, int], error: KafkaError | None) -> None:
        """Count it; without it the next owner gets the batch again."""
        if error is None:
            self._context.stats.committed(self._context.clock.now_ms())

    def _forget(self, owners: list[AssignedPartition]) -> None:
        self._early = [(owner, message) for owner, message in self._early if owner not in owners]

    def commit_answered(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Nothing to do: commits are synchronous."""

    # ---- telemetry

    def not_ready(self) -> list[str]:
        """Say what keeps records from being worked on."""
        context = self._context
        return not_ready_reasons(
            self._draining,
            context.membership.joined,
            context.blocked(),
            context.settings.processor.max_in_flight,
            len(self._consumption.unanswered),
            context.watchdog.late_s(),
            settling_s=context.outbox.waiting_s(),
        )

    def readings(self) -> Iterable[Reading]:
        """Return what runs, and the lags."""
        yield Reading(metrics.PROCESSOR_IN_FLIGHT, self._running)
        yield Reading(metrics.PROCESSOR_OLDEST_IN_FLIGHT, self._context.watchdog.oldest_s())
        yield Reading(metrics.PROCESSOR_OUTBOX, self._context.outbox.unacknowledged)
        yield Reading(metrics.PROCESSOR_STANDSTILL, self._context.watchdog.late_s())
        yield Reading(metrics.PROCESSOR_BLOCKED_SLOTS, self._context.blocked())
        yield from partition_readings(list(self._consumption.assigned.values()))


def poll_after_s(librdkafka: Mapping[str, Any]) -> float:
    """Return from when on a batch polls while it runs, s: well before ``max.poll.interval.ms`` costs the partitions."""
    return min(POLL_AFTER_S, float(librdkafka.get("max.poll.interval.ms", MAX_POLL_INTERVAL_MS)) / 3000)


def _count(stats: Stats, outcome: Outcome, trace: RecordTrace | None, reason: Reason | None = None) -> None:
    stats.settled[outcome.value] += 1
    if trace is None:
        return
    if reason is not None:
        trace.dead_lettered(reason)
    trace.ended(outcome)
