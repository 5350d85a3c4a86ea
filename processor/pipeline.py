"""The way of a record through the process: register, commit, call the handler, write the outcome."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Event

from confluent_kafka import Producer

from processor.attempts import Attempts
from processor.broker_connection import BrokerConnection
from processor.clock_watch import ClockWatch
from processor.commits import Commits
from processor.committable import CommittableOffsets
from processor.dead_letters import DeadLetters
from processor.deadline import DeadlineWatchdog
from processor.dispatch import Dispatcher
from processor.ending import Fault
from processor.group_consumer import GroupConsumer
from processor.membership import Membership
from processor.metrics import partition_readings
from processor.once import Once
from processor.outbox import Outbox
from processor.poll_loop import PollLoop
from processor.prefetch import Outstanding, Prefetch
from processor.readiness import not_ready_reasons
from processor.rebalance import Rebalance
from processor.registration import Registration
from processor.retry_decision import TimeLimits
from processor.settlement import Settlement
from processor.start_offsets import StartOffsets
from processor.stats import Stats
from processor.subscription import SubscribedTopic
from processor.traces import Traces
from wait_registry.clock import Clock
from wait_registry.settings.root import Settings
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import Reading
from wait_registry.telemetry.tracing import Tracer

log = logging.getLogger(__name__)

DRAIN_STEP_S = 0.005


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the pipeline is built from; made once, on the event loop's thread, after the start checks.

    ``stop`` is set when the process must end: stop polling, drain, return. ``once`` is None except with ``--once``; it
    says when the records that were in the topics at the start are processed. ``commit_metadata`` goes into every
    commit, by topic. ``tracer`` is None unless tracing is on.
    """

    settings: Settings
    instance: str
    cluster_id: str
    commit_metadata: Mapping[str, str]
    topics: dict[str, SubscribedTopic]
    limits: TimeLimits
    producer: Producer
    outbox: Outbox
    attempts: Attempts
    watchdog: DeadlineWatchdog
    start_offsets: StartOffsets
    connection: BrokerConnection
    membership: Membership
    clock: Clock
    fault: Fault
    stats: Stats
    stop: Event
    once: Once | None
    tracer: Tracer | None = None

    def blocked(self) -> int:
        """Return how many calls continue after their limit, each in a worker slot; from any thread."""
        slots = self.attempts.slots
        return self.watchdog.blocked() if slots is None else slots.blocked


class Pipeline:
    """Puts the parts together, runs the poll loop, and drains it."""

    def __init__(self, context: Context) -> None:
        settings, processor = context.settings, context.settings.processor
        clock, fault, stats, outbox = context.clock, context.fault, context.stats, context.outbox
        self._context = context
        self._draining = False
        self.leaving: asyncio.Future[None] | None = None
        self._end_s: float | None = None
        self.committable = CommittableOffsets()
        self.outstanding = Outstanding()
        letters = DeadLetters(
            outbox, context.topics, processor.group, context.instance, clock, stats, settings.log.error_messages
        )
        traces = None if context.tracer is None else Traces(context.tracer, processor.group, context.instance)
        settlement = Settlement(outbox, letters, settings.wait.topic, self.outstanding, stats, traces)
        self.registration = Registration(
            context.producer,
            outbox,
            settings.wait.topic,
            settings.wait.partitions,
            context.cluster_id,
            processor.group,
            context.topics,
            context.limits,
            clock,
            ClockWatch(processor.margin_s, clock, fault, stats),
            fault,
            stats,
            settlement.unregistrable,
            settlement.malformed,
            lambda entry: self.poll_loop.renewed(entry),
        )
        self.dispatcher = Dispatcher(
            processor.max_in_flight,
            processor.group,
            context.attempts,
            context.watchdog,
            clock,
            fault,
            settlement.settle,
            self.registration.renew,
            traces=traces,
        )
        self.poll_loop = self._make_poll_loop(context)

    def _make_poll_loop(self, context: Context) -> PollLoop:
        processor, clock, fault, stats = context.settings.processor, context.clock, context.fault, context.stats
        poll_loop = PollLoop(
            context.producer,
            context.outbox,
            self.registration,
            self.dispatcher,
            self.committable,
            self.outstanding,
            Prefetch(processor.max_in_flight, processor.prefetch_max, processor.prefetch_max_bytes),
            clock,
            fault,
            stats,
            processor.flush_timeout_s,
        )
        self.group_consumer = GroupConsumer(
            context.settings,
            poll_loop,
            context.start_offsets,
            context.commit_metadata,
            context.connection,
            context.membership,
            fault,
        )
        commit = self.group_consumer.commit
        commits = Commits(commit, processor.commit_interval_s, clock, fault, stats, poll_loop.confirmed)
        rebalance = Rebalance(self.committable, self.dispatcher, self.outstanding, commits, fault)
        poll_loop.attach(self.group_consumer, commits, rebalance)
        return poll_loop

    async def run(self) -> None:
        """Run until stopped; then release the partitions, let running handlers finish, and write their tombstones."""
        self.group_consumer.subscribe(self._context.topics)
        try:
            while not self._context.stop.is_set() and not self._worked_off():
                await self.poll_loop.iterate()
            await self._drain()
        except BaseException:
            self._draining = True
            (failure,) = await asyncio.gather(self._leave(), return_exceptions=True)
            if failure is not None:
                log.warning("leaving the group failed", exc_info=failure)
            await self.dispatcher.stop()
            raise

    def _left_s(self) -> float:
        """Return how much of the drain's limit is left, s; it starts with the first call."""
        now_s = self._context.clock.monotonic()
        if self._end_s is None:
            self._end_s = now_s + self._context.settings.processor.drain_timeout_s
        return self._end_s - now_s

    def _leave(self) -> asyncio.Future[None]:
        """Leave the group, once."""
        if self.leaving is None:
            self.leaving = asyncio.ensure_future(self.group_consumer.close(self._left_s()))
        return self.leaving

    def _worked_off(self) -> bool:
        once = self._context.once
        return (
            once is not None
            and self._context.membership.joined
            and not self.outstanding.records
            and not self.poll_loop.buffered
            and not self._context.outbox.unacknowledged
            and once.reached(self.group_consumer.assigned)
        )

    async def _drain(self) -> None:
        """Release the partitions first, so that the group continues; then finish the records, both within one limit."""
        self._draining = True
        processor, outbox = self._context.settings.processor, self._context.outbox
        registered = await self._until(self.poll_loop.registered, min(processor.flush_timeout_s, self._left_s()))
        # A flush that ran out of time isn't repeated.
        self.poll_loop.limit_flush(max(0.0, self._left_s()) if registered else 0.0)
        leaving = self._leave()
        await self._until(leaving.done, None)
        await leaving
        await self._until(lambda: not self.outstanding.records, self._left_s())
        left = self.outstanding.records
        await self.dispatcher.stop()
        await self._until(lambda: not outbox.unacknowledged, processor.flush_timeout_s)
        self._context.fault.raise_if_any()
        self._log_rest(left, outbox.unacknowledged)

    def _log_rest(self, records: int, unacknowledged: int) -> None:
        if records:
            limit_s = self._context.settings.processor.drain_timeout_s
            log.warning(
                "the drain exceeded its limit of %g s; %d records stay registered until they expire", limit_s, records
            )
        if unacknowledged:
            log.warning("the broker hasn't acknowledged %d tombstones or dead letters yet", unacknowledged)
        if not records and not unacknowledged:
            log.info("drained: no record is left")

    async def _until(self, condition: Callable[[], bool], timeout_s: float | None) -> bool:
        """Iterate without polling until the condition holds or the time is over; return the condition."""
        end_s = math.inf if timeout_s is None else self._context.clock.monotonic() + timeout_s
        while not condition() and self._context.clock.monotonic() < end_s:
            self.poll_loop.iterate_without_polling()
            await asyncio.sleep(DRAIN_STEP_S)
        return condition()

    def not_ready(self) -> list[str]:
        """Return why records aren't processed now."""
        context = self._context
        return not_ready_reasons(
            self._draining,
            context.membership.joined,
            context.blocked(),
            context.settings.processor.max_in_flight,
            len(self.group_consumer.pending_starts),
            context.watchdog.late_s(),
            self.committable.waiting_s(context.clock.monotonic()),
            context.outbox.waiting_s(),
        )

    def readings(self) -> Iterable[Reading]:
        """Return the records in flight and prefetched, the limits, and the lags."""
        yield Reading(metrics.PROCESSOR_IN_FLIGHT, self.dispatcher.running)
        yield Reading(metrics.PROCESSOR_OLDEST_IN_FLIGHT, self._context.watchdog.oldest_s())
        yield Reading(metrics.PROCESSOR_WAITING, self.dispatcher.waiting)
        yield Reading(metrics.PROCESSOR_PREFETCH, self.outstanding.records)
        yield Reading(metrics.PROCESSOR_PREFETCH_LIMIT, self.poll_loop.prefetch.bound)
        yield Reading(metrics.PROCESSOR_PREFETCH_BYTES, self.outstanding.size)
        yield Reading(metrics.PROCESSOR_UNACKNOWLEDGED, self.committable.pending())
        yield Reading(metrics.PROCESSOR_OUTBOX, self._context.outbox.unacknowledged)
        yield Reading(metrics.PROCESSOR_STALLED, self._context.watchdog.late_s())
        yield Reading(metrics.PROCESSOR_BLOCKED_SLOTS, self._context.blocked())
        yield Reading(metrics.PROCESSOR_PAUSED, self.poll_loop.pausing.paused)
        yield from partition_readings(list(self.group_consumer.assigned.values()))
