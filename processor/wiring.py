"""The parts of a processor, put together, run and drained."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Event

from processor.calls.attempts import Attempts
from processor.calls.deadline import DeadlineWatchdog
from processor.calls.retry_decision import TimeLimits
from processor.calls.worker_pool import WorkerPool
from processor.fault import Fault
from processor.flow.adaptive_limit import AdaptiveLimit
from processor.flow.bulkheads import Bulkheads
from processor.flow.concurrency import ConcurrencyLimit, FixedLimit
from processor.flow.flow import Flow
from processor.flow.prefetch import Prefetch
from processor.flow.scheduler import Ordered, Scheduler, Unordered, key_lane, partition_lane
from processor.flow.slots import Slots
from processor.handlers.router import Router
from processor.health.broker_connection import BrokerConnection
from processor.health.clock_watch import ClockWatch
from processor.health.metrics import partition_readings
from processor.health.readiness import not_ready_reasons
from processor.health.stats import Stats
from processor.health.traces import Traces
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.delivery import Consumer
from processor.intake.group_consumer import GroupConsumer
from processor.intake.membership import Membership
from processor.intake.range_consumer import RangeConsumer
from processor.intake.range_progress import Progress
from processor.intake.record_source import RecordSource
from processor.intake.share_group_consumer import ShareGroupConsumer
from processor.intake.start_offsets import StartOffsets
from processor.intake.stop_at_ends import Once
from processor.intake.subscription import SubscribedTopic
from processor.loop import Shell
from processor.protocol.engine import Engine
from processor.protocol.events import EndsSeen
from processor.protocol.open_records import OpenRecords
from processor.protocol.registering import Rules
from processor.protocol.results import RetryDelays
from processor.writing.dead_letters import DeadLetters
from processor.writing.emptied_topics import Committed
from processor.writing.outbox import Outbox
from processor.writing.outcomes import Outcomes
from processor.writing.retry_records import RetryRecords
from processor.writing.wait_records import WaitRecords
from wait_registry.clock import Clock
from wait_registry.errors import PermanentError
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import AUTO, Ordering, Oversized, ProcessorSettings, SourceKind
from wait_registry.settings.root import Settings
from wait_registry.telemetry import metrics
from wait_registry.telemetry.exposition import Reading
from wait_registry.telemetry.tracing import Tracer

log = logging.getLogger(__name__)

DRAIN_STEP_S = 0.005
# A commit acknowledges leased records in this process, and the next batch waits for it.
SHARE_COMMIT_S = 0.01


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that the pipeline is built from; made once, on the event loop's thread, after the start checks.

    ``stop`` is set when the process must end: stop polling, drain, return. ``once`` is None except with ``--once``; it
    says when the records that were in the topics at the start are processed. ``replay`` is None except in a replay,
    and has its ranges. ``topics`` has all topics of the group, and ``consumed`` those that are consumed now. ``tracer``
    is None unless tracing is on.
    """

    settings: Settings
    instance: str
    cluster_id: str
    topics: dict[str, SubscribedTopic]
    consumed: ConsumedTopics
    limits: TimeLimits
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
    replay: Progress | None = None
    tracer: Tracer | None = None

    def blocked(self) -> int:
        """Return how many calls continue after their limit, each in a worker slot; from any thread."""
        slots = self.attempts.slots
        return self.watchdog.blocked() if slots is None else slots.blocked

    def long_calls(self) -> int:
        """Return how many worker slots are held by calls older than `blocked_after_s`; from any thread."""
        slots = self.attempts.slots
        old = self.watchdog.older_than(self.settings.processor.blocked_after_s)
        return old if slots is None else old + slots.blocked


class Pipeline:
    """Puts the parts together, runs the loop, and drains it."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._draining = False
        self.leaving: asyncio.Future[None] | None = None
        self._end_s: float | None = None
        self._bulkheads = bulkheads_of(context.settings.processor)
        records = OpenRecords()
        self.flow = flow_of(context.settings.processor, records, self._bulkheads)
        self.engine = engine_of(context.settings, context.limits, records, self.flow)
        self.shell = self._make_shell(context)
        self.group_consumer = self.shell.consumer

    def _make_shell(self, context: Context) -> Shell:
        settings, processor = context.settings, context.settings.processor
        clock, fault, stats, outbox = context.clock, context.fault, context.stats, context.outbox
        traces = None if context.tracer is None else Traces(context.tracer, processor.group, context.instance)
        letters = DeadLetters(
            outbox, context.topics, processor.group, context.instance, clock, stats, settings.log.error_messages
        )
        clock_watch = ClockWatch(processor.margin_s, clock, fault, stats)
        retry_records = RetryRecords(
            outbox, context.topics, context.instance, processor.max_deliveries, clock, clock_watch, stats
        )
        wait_records = WaitRecords(
            outbox,
            settings.wait.topic,
            settings.wait.partitions,
            context.topics,
            clock,
            clock_watch,
            fault,
            stats,
        )
        return Shell(
            self.engine,
            self._make_source,
            Consumer(context.cluster_id, processor.group, processor.source is SourceKind.SHARE),
            context.topics,
            outbox,
            wait_records,
            Outcomes(outbox, letters, retry_records, settings.wait.topic, stats, traces),
            lambda ended: WorkerPool(context.attempts, context.watchdog, clock, fault, stats, ended, traces=traces),
            clock,
            clock_watch,
            fault,
            stats,
            processor.flush_timeout_s,
        )

    def _make_source(self, shell: Shell) -> RecordSource:
        context = self._context
        parts = (context.connection, context.membership, context.fault)
        if context.replay is not None:
            return RangeConsumer(context.settings, context.replay, shell, *parts)
        if context.settings.processor.source is SourceKind.SHARE:
            return ShareGroupConsumer(context.settings, shell, *parts)
        return GroupConsumer(context.settings, shell, context.start_offsets, *parts)

    async def run(self) -> None:
        """Run until stopped; then release the partitions, let running handlers finish, and write their tombstones."""
        self.group_consumer.subscribe(self._context.consumed.names)
        try:
            while not self._context.stop.is_set() and not self._worked_off():
                await self.shell.run_once()
                self._require_progress()
            await self._drain()
        except BaseException:
            self._draining = True
            (failure,) = await asyncio.gather(self._leave(), return_exceptions=True)
            if failure is not None:
                log.warning("leaving the group failed", exc_info=failure)
            await self.shell.pool.stop()
            raise

    def left_s(self) -> float:
        """Return how much of the drain's limit is left, s; it starts with the first call."""
        now_s = self._context.clock.monotonic()
        if self._end_s is None:
            self._end_s = now_s + self._context.settings.processor.drain_timeout_s
        return self._end_s - now_s

    def _leave(self) -> asyncio.Future[None]:
        """Leave the group, once."""
        if self.leaving is None:
            self.leaving = asyncio.ensure_future(self.group_consumer.close(self.left_s()))
        return self.leaving

    def _worked_off(self) -> bool:
        once = self._context.replay or self._context.once
        return (
            once is not None
            and self._context.membership.joined
            and not self.engine.records
            and not self._context.outbox.unacknowledged
            and once.reached(self.group_consumer.assigned)
        )

    def _require_progress(self) -> None:
        """Raise PermanentError if this process is to end, and what it waits for needs an operator."""
        once, refused = self._context.replay or self._context.once, self.engine.refused
        if once is not None and self.engine.waits_for_operator():
            places = ", ".join(sorted(f"{entry.partition!r} offset {entry.offset}" for entry in refused))
            raise PermanentError(
                f"the dead letters of {len(refused)} records are too large for their topic: {places}. Raise its "
                "max.message.bytes, or pass these records by, and start again"
            )

    async def _drain(self) -> None:
        """Handle what is registered, release the partitions, and finish the records, all within one limit."""
        self._draining = True
        self.shell.drain()
        processor, outbox, engine = self._context.settings.processor, self._context.outbox, self.engine
        # Part of the limit is for leaving, and for the calls that run then.
        settled_s = self._context.clock.monotonic() + self.left_s() / 2
        while engine.records.unsettled() and self._context.clock.monotonic() < settled_s:
            await self.shell.run_once()
        registered = await self._until(
            lambda: not engine.records.in_flight(), min(processor.flush_timeout_s, self.left_s())
        )
        # A flush that ran out of time isn't repeated.
        self.shell.limit_finish(max(0.0, self.left_s()) if registered else 0.0)
        leaving = self._leave()
        await self._until(leaving.done, None)
        await leaving
        await self._until(lambda: not engine.records, self.left_s())
        left = len(engine.records)
        await self.shell.pool.stop()
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
        """Continue without polling until the condition holds or the time is over; return the condition."""
        end_s = math.inf if timeout_s is None else self._context.clock.monotonic() + timeout_s
        while not condition() and self._context.clock.monotonic() < end_s:
            self.shell.run_without_polling()
            await asyncio.sleep(DRAIN_STEP_S)
        return condition()

    def committed_of_own_topics(self) -> dict[TopicPartition, Committed]:
        """Return up to where the assigned partitions of retry and redelivery topics may be emptied."""
        topics, partitions, found = self._context.topics, dict(self.engine.partitions), {}
        for place, assigned in dict(self.group_consumer.assigned).items():
            partition = partitions.get(place)
            if topics[place[0]].own and assigned.emptied_id and partition is not None and partition.confirmed >= 0:
                found[place] = Committed(partition.confirmed, assigned.emptied_id)
        return found

    def ends_seen(self, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Note where the logs of delayed partitions end; return below which offset all records of each are due."""
        self.shell.step(EndsSeen(ends))
        seen = {place: self.engine.partitions.get(place) for place in ends}
        return {place: p.due_times.seen_end for place, p in seen.items() if p is not None and p.due_times is not None}

    def not_ready(self) -> list[str]:
        """Return why records aren't processed now."""
        context = self._context
        return not_ready_reasons(
            self._draining,
            context.membership.joined,
            context.blocked(),
            self.flow.slots.limit,
            len(self.group_consumer.pending_starts),
            context.watchdog.late_s(),
            self.engine.records.registering_s(context.clock.monotonic()),
            context.outbox.waiting_s(),
            len(self.engine.refused),
        )

    def readings(self) -> Iterable[Reading]:
        """Return the records in flight and prefetched, the limits, and the lags."""
        yield Reading(metrics.PROCESSOR_IN_FLIGHT, self.shell.pool.running)
        yield Reading(metrics.PROCESSOR_IN_FLIGHT_LIMIT, self.flow.slots.limit)
        yield Reading(metrics.PROCESSOR_OLDEST_IN_FLIGHT, self._context.watchdog.oldest_s())
        yield Reading(metrics.PROCESSOR_WAITING, self.flow.slots.waiting)
        yield Reading(metrics.PROCESSOR_PREFETCH, len(self.engine.records))
        yield Reading(metrics.PROCESSOR_PREFETCH_LIMIT, self.engine.prefetch_limit)
        yield Reading(metrics.PROCESSOR_PREFETCH_BYTES, self.engine.records.size)
        yield Reading(metrics.PROCESSOR_UNACKNOWLEDGED, self.engine.records.in_flight())
        yield Reading(metrics.PROCESSOR_OUTBOX, self._context.outbox.unacknowledged)
        yield Reading(metrics.PROCESSOR_STALLED, self._context.watchdog.late_s())
        yield Reading(metrics.PROCESSOR_BLOCKED_SLOTS, self._context.blocked())
        if self._bulkheads is not None:
            for route, free in self._bulkheads.free.items():
                yield Reading(metrics.PROCESSOR_ROUTE_FREE_SLOTS, free, (str(route),))
        yield Reading(metrics.PROCESSOR_LONG_CALLS, self._context.long_calls())
        yield Reading(metrics.PROCESSOR_BLOCKED_CANCELLED, self.flow.slots.blocked_cancelled)
        yield Reading(metrics.PROCESSOR_PAUSED, self.engine.paused)
        yield Reading(metrics.PROCESSOR_REFUSED, len(self.engine.refused))
        yield Reading(metrics.PROCESSOR_START_PAUSE, self.flow.slots.start_pause_s)
        yield from partition_readings(list(self.group_consumer.assigned.values()), dict(self.engine.partitions))


def engine_of(settings: Settings, limits: TimeLimits, records: OpenRecords, flow: Flow) -> Engine:
    """Build the engine of a processor from its settings."""
    processor = settings.processor
    rules = Rules(
        mode=processor.registration,
        register_after_s=processor.register_after_s,
        uncommitted_max=processor.uncommitted_max,
        commit_interval_s=SHARE_COMMIT_S if processor.source is SourceKind.SHARE else processor.commit_interval_s,
        ttl_s=limits.ttl_s,
        start_needs_s=limits.start_needs_s,
        hold_oversized=processor.oversized is Oversized.HOLD,
    )
    return Engine(rules, records, flow, RetryDelays(processor.retry.delays_s))


def flow_of(processor: ProcessorSettings, records: OpenRecords, bulkheads: Bulkheads | None) -> Flow:
    """Build what decides how much a processor does at once."""
    limit = limit_of(processor)
    cancel_after_s = processor.blocked_after_s if processor.cancel_blocked else None
    slots = Slots(scheduler_of(processor.ordering), limit, bulkheads, cancel_after_s)
    prefetch = Prefetch(limit, processor.prefetch_max, processor.prefetch_max_bytes)
    return Flow(records, slots, prefetch, processor.uncommitted_max)


def limit_of(processor: ProcessorSettings) -> ConcurrencyLimit:
    """Return what decides how many calls may run (``processor.max_in_flight``)."""
    if processor.max_in_flight == AUTO:
        return AdaptiveLimit(processor.max_in_flight_min, processor.max_in_flight_max)
    return FixedLimit(processor.max_in_flight)


def scheduler_of(ordering: Ordering) -> Scheduler:
    """Return what decides which record may start (``processor.ordering``)."""
    if ordering is Ordering.UNORDERED:
        return Unordered()
    return Ordered(key_lane if ordering is Ordering.KEY else partition_lane)


def bulkheads_of(processor: ProcessorSettings) -> Bulkheads | None:
    """Return the worker slots of routes; None if no route has a limit of its own."""
    limits = {n: route.max_in_flight for n, route in enumerate(processor.routes) if route.max_in_flight is not None}
    if not limits:
        return None
    router = Router([route.match for route in processor.routes])
    return Bulkheads(lambda entry: router.route_of(entry.record), limits)
