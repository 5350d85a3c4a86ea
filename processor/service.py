"""The processor as a service: start checks, telemetry, the pipeline, an orderly end."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, TypeVar

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from processor.calls.attempts import Attempts
from processor.calls.deadline import DeadlineWatchdog
from processor.calls.retry_decision import RetryDecision, time_limits
from processor.fault import Fault, run_and_end
from processor.handlers.descriptors import raise_descriptor_limit
from processor.handlers.handler_life import HandlerLife
from processor.handlers.loading import require_cancellable
from processor.handlers.open_handler import OpenHandler
from processor.handlers.routed import load_handlers
from processor.health.broker_connection import BrokerConnection
from processor.health.broker_watch import BrokerWatch
from processor.health.metrics import settings_readings, stats_readings
from processor.health.stall_watchdog import StallWatchdog, StopGuard
from processor.health.stats import Stats
from processor.intake.absent_topics import AbsentTopics
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.group_consumer import GroupConsumer
from processor.intake.log_ends import LogEnds
from processor.intake.lost_offsets import warn_of_lost_offsets
from processor.intake.membership import Membership
from processor.intake.open_transactions import OpenTransactions
from processor.intake.range_progress import Progress
from processor.intake.share_group_limits import require_share_group
from processor.intake.start_offsets import ASK_LIMIT_S, StartOffsets
from processor.intake.stop_at_ends import Once, ends_now
from processor.intake.subscription import SubscribedTopic, subscription
from processor.wiring import Context, Pipeline
from processor.writing.emptied_topics import EmptiedTopics
from processor.writing.outbox import Outbox
from wait_registry.clock import Clock, SystemClock
from wait_registry.display import one_line
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.broker_checks import require_brokers
from wait_registry.kafka.clients import Admin, producer_config, usable_settings
from wait_registry.kafka.clients import admin as open_admin
from wait_registry.kafka.cluster import TopicIdentity, cluster_id, readable_topic_ids, topic_names
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.group_description import describe_group
from wait_registry.kafka.positions import beginnings_in_time, ends_in_time, firsts_in_time
from wait_registry.kafka.topics import require_topics
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.service.gc_tuning import tune_gc
from wait_registry.service.health import Health
from wait_registry.settings.processor import SourceKind
from wait_registry.settings.relations import require_relations
from wait_registry.settings.root import Settings
from wait_registry.telemetry.certificate_ends import expose_certificate_ends
from wait_registry.telemetry.exposition import HistogramReading, MetricsRegistry, Reading
from wait_registry.telemetry.metrics import READY
from wait_registry.telemetry.server import TelemetryServer
from wait_registry.telemetry.tracing import Tracer, start_tracing

log = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_START_S = 1.0
LAST_FLUSH_S = 5.0
LEFT_OVER_S = 1.0


class Facts(NamedTuple):
    """The broker's answers at the start; ``once`` only with ``--once``."""

    cluster_id: str
    instance: str
    topics: dict[str, SubscribedTopic]
    consumed: ConsumedTopics
    once: Once | None


class ProcessorService:
    """One processor process.

    Args:
        settings: all settings.
        once: stop when what was in the topics at the start has been worked off.
        clock: wall clock and monotonic clock.
        random: returns a number in [0, 1), for jitter.
        tracer: makes traces instead of the settings' tracer; it is stopped at the end too.
        replay: the ranges to handle, and nothing else; made by `waitreg.replay.service`.
    """

    def __init__(
        self,
        settings: Settings,
        once: bool = False,
        clock: Clock | None = None,
        random: Callable[[], float] = random.random,
        tracer: Tracer | None = None,
        replay: Progress | None = None,
    ) -> None:
        self._settings = settings
        self._once = once
        self._replay = replay
        self._clock = clock or SystemClock()
        self._random = random
        self._tracer = tracer
        self._stop = threading.Event()
        self._stop_guard = StopGuard(settings.processor.drain_timeout_s, self._stop)
        self.pipeline: Pipeline | None = None
        self._instance = ""
        self.fault = Fault()
        self._forgotten: TransientError | None = None
        self._connection = BrokerConnection(self.fault, self._brokers_forgotten, self._clock.monotonic)
        self._membership = Membership(settings.processor)
        self.stats = Stats()
        self.telemetry_port = 0

    def run(self) -> None:
        """Work until `request_stop`; running handlers may finish then.

        Raises:
            ConfigurationError: settings, topics or handler are wrong.
            WaitRegistryError: the process can't continue; unfinished records stay registered.
        """
        try:
            run_and_end(self._run(), LEFT_OVER_S, self.fault)
        finally:
            self._stop_guard.close()

    def request_stop(self) -> None:
        """Request that `run` ends soon; call it from any thread or signal handler, any number of times."""
        self._stop.set()

    async def _run(self) -> None:
        settings = self._settings
        self._stop_guard.start()
        require_relations(settings, "processor")
        raise_descriptor_limit()
        # Before the handler is imported, which may ask for the process's tracer.
        tracer = self._tracer = self._tracer or start_tracing(settings.telemetry, "processor")
        try:
            handler = load_handlers(settings.processor, None if tracer is None else tracer.http_headers)
            await self._serve(handler)
        finally:
            if tracer is not None:
                await asyncio.to_thread(tracer.stop)

    async def _serve(self, handler: OpenHandler) -> None:
        settings = self._settings
        metrics = MetricsRegistry()
        metrics.collect_from(self.readings)
        expose_certificate_ends(metrics, settings)
        telemetry = settings.telemetry
        with TelemetryServer(telemetry.host, telemetry.port, metrics, self._live, self.ready) as server:
            self.telemetry_port = server.port
            admin = open_admin(settings.kafka)
            wait_topic = await self._when_reachable(lambda: self._check_topics(admin))
            if wait_topic is None:
                return
            life = HandlerLife(handler, self.fault)
            if not await life.open(lambda: self._ending(0)):
                self.fault.raise_if_any()
                return
            try:
                require_cancellable(handler, settings.processor)
                await self.work(handler, admin, wait_topic)
            except BaseException as error:
                # Closing the handler may take long, or may never return.
                log.error("the process ends: %s: %s", type(error).__name__, one_line(str(error)))  # noqa: TRY400
                self.request_stop()
                await life.close(self._left_s())
                raise
            if (failure := await life.close(self._left_s())) is not None:
                raise failure

    def _left_s(self) -> float:
        """Return how much of the drain's limit is left, s."""
        drain_s = self._settings.processor.drain_timeout_s
        return max(LEFT_OVER_S, drain_s if self.pipeline is None else self.pipeline.left_s())

    def _check_topics(self, admin: AdminClient) -> TopicIdentity:
        require_brokers(self._settings, processor=True)
        require_topics(self._settings, "processor")
        wait = self._settings.wait
        return describe_wait_topic(admin, wait.topic, wait.partitions)

    async def _when_reachable(self, question: Callable[[], T]) -> T | None:
        """Ask the broker, repeatedly during an outage; return None if the process must stop."""
        while not self._stop.is_set():
            try:
                answer = await asyncio.to_thread(question)
                self._connection.answered()
                return answer
            except TransientError as error:
                self._connection.up = False
                log.warning("the broker doesn't answer yet: %s", error)
                await asyncio.sleep(RETRY_START_S)
        return None

    async def work(
        self,
        handler: OpenHandler,
        admin: Admin,
        wait_topic: TopicIdentity,
    ) -> None:
        """Process records until the service is stopped."""
        facts = await self._when_reachable(lambda: self.facts(admin))
        if facts is None:
            return
        outbox = Outbox(self._producer(), self._lone_producer, self._batch_bytes, self.fault, self._clock.monotonic)
        self._instance = facts.instance
        self.stats.consumed.update(dict.fromkeys(facts.topics, 0))
        self.stats.retries.update(dict.fromkeys(self._settings.processor.retry.delays, 0))
        watchdog = DeadlineWatchdog(self._clock, self._settings.processor.handler_timeout_s)
        self.pipeline = Pipeline(self._context(admin, outbox, handler, watchdog, wait_topic, facts))
        tasks = self._start_tasks(self.pipeline, admin, wait_topic, facts)
        watchdog.start()
        stall_watchdog = StallWatchdog(watchdog.late_s)
        stall_watchdog.start()
        tune_gc()
        try:
            await self.pipeline.run()
        finally:
            for task in tasks:
                task.cancel()
            stall_watchdog.stop()
            watchdog.stop()
            # Tombstones of finished records; a record without an acknowledged tombstone expires and is dead-lettered.
            left = await asyncio.to_thread(outbox.flush, LAST_FLUSH_S)
            if left:
                log.warning("%d records aren't acknowledged by the broker at the end", left)
        # Errors of the last answers, which no iteration has seen.
        self.fault.raise_if_any()
        if self._forgotten is not None:
            raise self._forgotten

    def _start_tasks(
        self, pipeline: Pipeline, admin: AdminClient, wait_topic: TopicIdentity, facts: Facts
    ) -> list[asyncio.Task[None]]:
        """Start what runs alongside the pipeline."""
        emptied = EmptiedTopics(admin, pipeline.committed_of_own_topics)
        source, clock = pipeline.group_consumer, self._clock
        ends, firsts = partial(ends_in_time, admin), partial(firsts_in_time, admin)
        log_ends = LogEnds(source, facts.topics, ends, firsts, pipeline.ends_seen, clock.now_ms)
        stable_ends = partial(ends_in_time, admin, isolation="read_committed")
        transactions = OpenTransactions(source.assigned, stable_ends, clock.monotonic)
        tasks = [
            asyncio.create_task(self._broker_watch(admin, wait_topic, facts).run(), name="broker-watch"),
            asyncio.create_task(emptied.run(), name="emptied-topics"),
            asyncio.create_task(log_ends.run(), name="log-ends"),
            asyncio.create_task(transactions.run(), name="open-transactions"),
        ]
        # With --once, and in a replay, what is to be consumed is known. A share group consumes the input topics alone.
        later = facts.consumed.absent and facts.once is None
        if later and isinstance(consumer := pipeline.group_consumer, GroupConsumer):
            absent = AbsentTopics(partial(readable_topic_ids, admin), facts.consumed, consumer.resubscribe)
            tasks.append(asyncio.create_task(absent.run(), name="absent-topics"))
        for task in tasks:
            task.add_done_callback(self._task_ended)
        return tasks

    def _brokers_forgotten(self, error: TransientError) -> None:
        """Stop as if requested: the other client may still write the outcomes of finished records."""
        log.error("%s", error)
        if not self._stop.is_set():
            self._forgotten = error
        self._stop.set()

    def _broker_watch(self, admin: AdminClient, wait_topic: TopicIdentity, facts: Facts) -> BrokerWatch:
        describe = partial(describe_group, self._settings.kafka, self._settings.processor.group)
        membership, once = self._membership, facts.once
        return BrokerWatch(
            admin, wait_topic, facts.consumed, membership, once, describe, self._connection, self._clock, self.fault
        )

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fault.report(error)

    def facts(self, admin: Admin) -> Facts:
        """Ask the broker for what the processor needs to know before it starts."""
        if self._settings.processor.source is SourceKind.SHARE:
            if self._once:
                raise ConfigurationError(
                    "--once needs offsets, which a share group doesn't have: remove one of the two"
                )
            require_share_group(admin, self._settings.processor)
        elif self._replay is None:
            warn_of_lost_offsets(self._settings, admin)
        instance = self._settings.processor.instance or instance_name(self._clock)
        topics = subscription(self._settings, instance, topic_names(admin))
        consumed = ConsumedTopics.look_up(admin, self._settings.processor.group, topics.values())
        once = Once(self._settings, ends_now(admin, consumed.names), self._clock) if self._once else None
        return Facts(cluster_id(admin), instance, topics, consumed, once)

    def _context(
        self,
        admin: AdminClient,
        outbox: Outbox,
        handler: OpenHandler,
        watchdog: DeadlineWatchdog,
        wait_topic: TopicIdentity,
        facts: Facts,
    ) -> Context:
        processor = self._settings.processor
        limits, consumed = time_limits(processor), facts.consumed
        decision = RetryDecision(processor, limits, self._random)
        return Context(
            settings=self._settings,
            instance=facts.instance,
            cluster_id=facts.cluster_id,
            topics=facts.topics,
            consumed=consumed,
            limits=limits,
            outbox=outbox,
            attempts=Attempts(handler, processor.handler_timeout_s, decision, self._clock, self.stats),
            watchdog=watchdog,
            start_offsets=StartOffsets(
                wait_topic,
                consumed,
                self._ending,
                self._committed,
                partial(ends_in_time, admin),
                partial(beginnings_in_time, admin),
            ),
            connection=self._connection,
            membership=self._membership,
            clock=self._clock,
            fault=self.fault,
            stats=self.stats,
            stop=self._stop,
            once=facts.once,
            replay=self._replay,
            tracer=self._tracer,
        )

    def _committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        places = [(place.topic, place.partition) for place in partitions]
        return committed_offsets(self._settings.kafka, self._settings.processor.group, places, ASK_LIMIT_S)

    def producer_config(self) -> dict[str, object]:
        """Return the properties of the producer."""
        return producer_config(
            self._settings.kafka,
            **{
                "linger.ms": self._settings.processor.linger_ms,
                # A batch larger than the topic takes would be refused with every record in it.
                "batch.size": self._batch_bytes,
                "error_cb": self._connection.on_error,
                **self._connection.stats_config("producer"),
            },
        )

    @property
    def _batch_bytes(self) -> int:
        return min(1_000_000, self._settings.wait.max_message_bytes)

    def _producer(self, **overrides: object) -> Producer:
        with usable_settings():
            return Producer({**self.producer_config(), **overrides})

    def _lone_producer(self) -> Producer:
        return self._producer(**{"batch.num.messages": 1, "linger.ms": 0})

    def readings(self) -> Iterator[Reading | HistogramReading]:
        """Return what /metrics shows."""
        yield Reading(READY, self.ready().ok, ("processor",))
        yield from stats_readings(self.stats, self._connection)
        if self.pipeline is not None:
            yield from settings_readings(self._settings.processor, self._instance)
            yield from self.pipeline.readings()

    def _ending(self, timeout_s: float) -> bool:
        """Wait for the timeout or the stop; return whether the process must end."""
        return self._stop.wait(timeout_s) or self.fault.error is not None

    def _live(self) -> Health:
        return Health.of([] if self.fault.error is None else [f"stopping: {type(self.fault.error).__name__}"])

    def ready(self) -> Health:
        """Return whether the processor works, with the reasons if it doesn't."""
        reasons = [] if self._connection.up else ["the broker can't be reached"]
        reasons += ["starting"] if self.pipeline is None else self.pipeline.not_ready()
        if self._forgotten is not None:
            reasons.append("a Kafka client has forgotten all brokers")
        if self.fault.error is not None:
            reasons.append(f"stopping: {type(self.fault.error).__name__}")
        return Health.of(reasons)


def instance_name(clock: Clock) -> str:
    """Return the default name of this process: host name and start time (UTC, ms)."""
    now_ms = clock.now_ms()
    started = datetime.fromtimestamp(now_ms // 1000, UTC)
    return f"{socket.gethostname()}-{started:%Y%m%dT%H%M%S}.{now_ms % 1000:03d}Z"
