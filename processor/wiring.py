"""The parts of a processor, built in one step."""

from __future__ import annotations

from collections.abc import Callable, Sized
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from processor.calls.attempts import Attempts
from processor.calls.deadline import DeadlineWatchdog
from processor.calls.retry_decision import RetryDecision, TimeLimits, time_limits
from processor.calls.traces import Traces
from processor.calls.worker_pool import WorkerPool
from processor.flow.adaptive_limit import AdaptiveLimit
from processor.flow.concurrency import ConcurrencyLimit, FixedLimit
from processor.flow.flow import Flow
from processor.flow.prefetch import Prefetch
from processor.flow.route_limits import RouteLimits
from processor.flow.scheduler import Ordered, Scheduler, Unordered, key_lane, partition_lane
from processor.flow.slots import Slots
from processor.handlers.open_handler import OpenHandler
from processor.handlers.router import Router
from processor.health.broker_connection import BrokerConnection
from processor.health.clock_watch import ClockWatch
from processor.health.readiness import Condition
from processor.inbox import Inbox
from processor.intake import absent_topics, broker_watch, log_ends, open_transactions
from processor.intake.absent_topics import AbsentTopics
from processor.intake.broker_watch import BrokerWatch, Questions
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.delivery import Deliveries, GroupIdentity
from processor.intake.group_consumer import GroupConsumer
from processor.intake.log_ends import LogEnds
from processor.intake.membership import Membership
from processor.intake.open_transactions import OpenTransactions
from processor.intake.record_source import RecordSource
from processor.intake.replay_consumer import ReplayConsumer
from processor.intake.replay_progress import ReplayProgress
from processor.intake.share_group_consumer import ShareGroupConsumer
from processor.intake.start_offsets import ASK_LIMIT_S, StartOffsets
from processor.intake.stop_at_ends import StopAtEnds
from processor.intake.subscription import SubscribedTopic
from processor.loop import Loop
from processor.periodic import Periodic
from processor.protocol.engine import Engine
from processor.protocol.open_records import OpenRecords
from processor.protocol.registering import Rules
from processor.protocol.results import RetryDelays
from processor.run import Run
from processor.writing import emptied_topics
from processor.writing.emptied_topics import EmptiedTopics
from processor.writing.failed_records import FailedRecords
from processor.writing.outbox import Outbox
from processor.writing.outcomes import Outcomes
from processor.writing.wait_records import WaitRecords
from processor.writing.writers import Writers
from wait_registry.clock import Clock
from wait_registry.kafka.clients import producer_config, usable_settings
from wait_registry.kafka.cluster import TopicIdentity, readable_topic_ids
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.group_description import describe_group
from wait_registry.kafka.positions import beginnings_in_time, ends_in_time
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import AUTO, Ordering, Oversized, ProcessorSettings, SourceKind
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.tracing import Tracer

# A commit acknowledges leased records in this process, and the next batch waits for it.
SHARE_COMMIT_S = 0.01


@dataclass(frozen=True, slots=True)
class Process:
    """What a process has before it asks the broker.

    Args:
        settings: all settings.
        clock: wall clock and monotonic clock.
        random: returns a number in [0, 1), for jitter.
        inbox: gets what the parts report.
        connection: takes the events of the Kafka clients.
        stop: set when the process must end: stop polling, drain, return.
        replay: the ranges of a replay; None in any other process.
    """

    settings: Settings
    clock: Clock
    random: Callable[[], float]
    inbox: Inbox
    connection: BrokerConnection
    stop: Event
    replay: ReplayProgress | None = None

    def ending(self, timeout_s: float) -> bool:
        """Wait for the timeout or the stop; return whether the process must end."""
        return self.stop.wait(timeout_s) or self.inbox.fault.error is not None


@dataclass(frozen=True, slots=True)
class Facts:
    """The broker's answers at the start.

    Args:
        cluster_id: for wait IDs.
        instance: the name of this process.
        topics: all topics of the group, by name.
        consumed: those that are consumed now.
        wait_topic: the identity of the wait topic.
        ends: says when the records that were in the topics at the start are processed; only with ``--once``.
    """

    cluster_id: str
    instance: str
    topics: dict[str, SubscribedTopic]
    consumed: ConsumedTopics
    wait_topic: TopicIdentity
    ends: StopAtEnds | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a running processor.

    Args:
        loop: with engine, source, writers and calls.
        run: runs the loop.
        watchdog: ends attempts that are over their limit.
        membership: of the group.
        pending_starts: the partitions that can't start yet.
        route_limits: the worker slots of routes, if some have a limit of their own.
        blocked_after_s: how old a call is that counts as long, s.
        tasks: what is repeated alongside the loop.
    """

    loop: Loop
    run: Run
    watchdog: DeadlineWatchdog
    membership: Membership
    flow: Flow
    pending_starts: Sized
    route_limits: RouteLimits | None
    blocked_after_s: float
    tasks: tuple[Periodic, ...]

    def blocked(self) -> int:
        """Return how many calls continue after their limit, each in a worker slot; from any thread."""
        slots = self.loop.calls.slots
        return self.watchdog.blocked() if slots is None else slots.blocked

    def condition(self, now_s: float) -> Condition:
        """Return what the processor does now."""
        engine, writers = self.loop.engine, self.loop.writers
        return Condition(
            self.flow.slots.limit,
            draining=self.run.draining,
            joined=self.membership.joined,
            blocked=self.blocked(),
            without_start=len(self.pending_starts),
            blocked_s=self.watchdog.late_s(),
            registering_s=engine.records.registering_s(now_s),
            settling_s=writers.outbox.waiting_s(),
            refused=len(engine.refused),
        )


def build(
    process: Process,
    facts: Facts,
    handler: OpenHandler,
    admin: AdminClient,
    outbox: Outbox,
    tracer: Tracer | None = None,
) -> Parts:
    """Build the parts of a processor, on the running event loop.

    Args:
        process: what was there before the broker was asked.
        facts: the broker's answers.
        handler: opened already.
        admin: asks the broker from time to time.
        outbox: sends what is written.
        tracer: makes traces; None unless tracing is on.
    """
    processor, inbox, clock = process.settings.processor, process.inbox, process.clock
    traces = None if tracer is None else Traces(tracer, processor.group, facts.instance)
    clock_watch = ClockWatch(processor.margin_s, clock, inbox.fault, inbox.stats)
    watchdog = DeadlineWatchdog(clock, processor.handler_timeout_s)
    limits, route_limits = time_limits(processor), route_limits_of(processor)
    decision = RetryDecision(processor, limits, process.random)
    attempts = Attempts(handler, processor.handler_timeout_s, decision, clock, inbox.stats)
    calls = WorkerPool(attempts, watchdog, clock, inbox, traces=traces)
    writers = _writers(process, facts, outbox, clock_watch, traces)
    membership = Membership(processor)
    intake = _intake(process, facts, clock_watch, membership, admin)
    engine, flow = engine_of(processor, limits, route_limits)
    loop = Loop(engine, intake.source, writers, calls, inbox, clock)
    run = Run(loop, membership, process.replay or facts.ends, processor.drain_timeout_s, clock, inbox.fault)
    tasks = (*_tasks(process, facts, intake, loop, membership, admin), *intake.tasks)
    pending, blocked_s = intake.pending_starts, processor.blocked_after_s
    return Parts(loop, run, watchdog, membership, flow, pending, route_limits, blocked_s, tasks)


def outbox_of(process: Process) -> Outbox:
    """Build what sends all that is written."""
    config = outbox_config(process.settings, process.connection)

    def producer(**overrides: object) -> Producer:
        with usable_settings():
            return Producer({**config, **overrides})

    alone = partial(producer, **{"batch.num.messages": 1, "linger.ms": 0})
    batch_bytes = int(config["batch.size"])
    return Outbox(producer(), alone, batch_bytes, process.inbox.fault, process.clock.monotonic)


def outbox_config(settings: Settings, connection: BrokerConnection) -> dict[str, Any]:
    """Return the properties of the producer."""
    return producer_config(
        settings.kafka,
        **{
            "linger.ms": settings.processor.linger_ms,
            # A batch larger than the topic takes would be refused with every record in it.
            "batch.size": min(1_000_000, settings.wait.max_message_bytes),
            "error_cb": connection.on_error,
            **connection.stats_config("producer"),
        },
    )


def _writers(process: Process, facts: Facts, outbox: Outbox, clock_watch: ClockWatch, traces: Traces | None) -> Writers:
    settings, inbox, topics = process.settings, process.inbox, facts.topics
    failed_records = FailedRecords(outbox, topics, facts.instance, settings, clock_watch, inbox.stats)
    wait_records = WaitRecords(outbox, settings.wait, topics, clock_watch, inbox)
    outcomes = Outcomes(outbox, failed_records, settings.wait.topic, inbox, traces)
    return Writers(outbox, wait_records, outcomes, settings.processor.flush_timeout_s)


@dataclass(frozen=True, slots=True)
class _Intake:
    """A source, and what the kind of source has besides."""

    source: RecordSource
    pending_starts: Sized = ()
    paused: AbstractSet[TopicPartition] = frozenset()
    tasks: tuple[Periodic, ...] = ()


def _intake(
    process: Process, facts: Facts, clock_watch: ClockWatch, membership: Membership, admin: AdminClient
) -> _Intake:
    settings, processor, inbox = process.settings, process.settings.processor, process.inbox
    shares = processor.source is SourceKind.SHARE
    deliveries = Deliveries(GroupIdentity(facts.cluster_id, processor.group), facts.topics, clock_watch, shares)
    common = (settings, inbox, deliveries, process.connection, membership)
    if process.replay is not None:
        return _Intake(ReplayConsumer(*common, process.replay))
    if shares:
        return _Intake(ShareGroupConsumer(*common))

    def committed(partitions: list[KafkaPartition]) -> list[KafkaPartition]:
        places = [(place.topic, place.partition) for place in partitions]
        return committed_offsets(settings.kafka, processor.group, places, ASK_LIMIT_S)

    ends, beginnings = partial(ends_in_time, admin), partial(beginnings_in_time, admin)
    starts = StartOffsets(facts.wait_topic, facts.consumed, process.ending, committed, ends, beginnings)
    consumer = GroupConsumer(*common, starts)
    tasks: tuple[Periodic, ...] = ()
    # With --once what is to be consumed is known.
    if facts.consumed.absent and facts.ends is None:
        absent = AbsentTopics(partial(readable_topic_ids, admin), facts.consumed, consumer.resubscribe)
        absent.warn()
        tasks = (Periodic("absent-topics", absent_topics.LOOK_EVERY_S, absent.run_once),)
    return _Intake(consumer, consumer.pending_starts, consumer.paused, tasks)


def _tasks(
    process: Process, facts: Facts, intake: _Intake, loop: Loop, membership: Membership, admin: AdminClient
) -> tuple[Periodic, ...]:
    assigned, clock = intake.source.assigned, process.clock
    describe = partial(describe_group, process.settings.kafka, process.settings.processor.group)
    questions = Questions(admin, facts.wait_topic, facts.consumed, describe)
    watch = BrokerWatch(questions, membership, facts.ends, process.connection, clock, process.inbox.fault)
    emptied = EmptiedTopics(admin, facts.topics, assigned, loop.engine.partitions)
    ends = LogEnds(admin, assigned, intake.paused, facts.topics, loop.ends_seen, clock.now_ms)
    stable_ends = partial(ends_in_time, admin, isolation="read_committed")
    transactions = OpenTransactions(assigned, stable_ends, clock.monotonic)
    return (
        Periodic("broker-watch", broker_watch.PROBE_EVERY_S, watch.run_once),
        Periodic("emptied-topics", emptied_topics.EVERY_S, emptied.run_once, emptied_topics.FIRST_S),
        Periodic("log-ends", log_ends.ASK_EVERY_S, ends.run_once),
        Periodic("open-transactions", open_transactions.LOOK_EVERY_S, transactions.run_once),
    )


def engine_of(
    processor: ProcessorSettings, limits: TimeLimits, route_limits: RouteLimits | None
) -> tuple[Engine, Flow]:
    """Build the engine of a processor from its settings, and what decides how much it does at once."""
    rules = Rules(
        mode=processor.registration,
        register_after_s=processor.register_after_s,
        uncommitted_max=processor.uncommitted_max,
        commit_interval_s=SHARE_COMMIT_S if processor.source is SourceKind.SHARE else processor.commit_interval_s,
        ttl_s=limits.ttl_s,
        start_needs_s=limits.start_needs_s,
        hold_oversized=processor.oversized is Oversized.HOLD,
    )
    limit, records = limit_of(processor), OpenRecords()
    cancel_after_s = processor.blocked_after_s if processor.cancel_blocked else None
    slots = Slots(scheduler_of(processor.ordering), limit, route_limits, cancel_after_s)
    flow = Flow(rules, records, slots, Prefetch(limit, processor.prefetch_max, processor.prefetch_max_bytes))
    return Engine(rules, records, flow, RetryDelays(processor.retry.delays_s)), flow


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


def route_limits_of(processor: ProcessorSettings) -> RouteLimits | None:
    """Return the worker slots of routes; None if no route has a limit of its own."""
    limits = {n: route.max_in_flight for n, route in enumerate(processor.routes) if route.max_in_flight is not None}
    if not limits:
        return None
    router = Router([route.match for route in processor.routes])
    return RouteLimits(lambda entry: router.route_of(entry.record), limits)
