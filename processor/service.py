"""The processor as a service: start checks, telemetry, its parts, an orderly end."""

from __future__ import annotations

import logging
import random
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from confluent_kafka.admin import AdminClient

from processor.event_loop import run_and_end
from processor.handlers.descriptors import raise_descriptor_limit
from processor.handlers.handler_life import HandlerLife
from processor.handlers.loading import require_cancellable
from processor.handlers.open_handler import OpenHandler
from processor.handlers.routed import load_handlers
from processor.health.broker_connection import BrokerConnection
from processor.health.stall_watchdog import StallWatchdog, StopGuard
from processor.inbox import Inbox
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.lost_offsets import warn_of_lost_offsets
from processor.intake.replay_progress import ReplayProgress
from processor.intake.share_group_limits import require_share_group
from processor.intake.stop_at_ends import StopAtEnds, ends_now
from processor.intake.subscription import subscription
from processor.metrics import parts_readings, settings_readings, stats_readings
from processor.wiring import Facts, Parts, Process, build, outbox_of
from wait_registry.clock import Clock, SystemClock
from wait_registry.daemon_threads import in_daemon_thread
from wait_registry.display import one_line
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.broker_checks import require_brokers
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.clients import admin as open_admin
from wait_registry.kafka.cluster import TopicIdentity, cluster_id, topic_names
from wait_registry.kafka.topics import require_topics
from wait_registry.kafka.wait_topic import describe_wait_topic
from wait_registry.outage import through_outage
from wait_registry.service.gc_tuning import tune_gc
from wait_registry.service.health import Health
from wait_registry.settings.processor import SourceKind
from wait_registry.settings.relations import require_relations
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.exposition import HistogramReading, MetricsRegistry, Reading
from wait_registry.telemetry.server import service_server
from wait_registry.telemetry.tracing import Tracer, start_tracing

log = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_START_S = 1.0
LAST_FLUSH_S = 5.0
LEFT_OVER_S = 1.0


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
        replay: ReplayProgress | None = None,
    ) -> None:
        self._once = once
        self._tracer = tracer
        clock, inbox = clock or SystemClock(), Inbox()
        self._process = Process(
            settings,
            clock,
            random,
            inbox,
            BrokerConnection(inbox.fault, self._brokers_forgotten, clock.monotonic),
            threading.Event(),
            replay,
        )
        self.fault = self._process.inbox.fault
        self.stats = self._process.inbox.stats
        self._stop_guard = StopGuard(settings.processor.drain_timeout_s, self._process.stop)
        self._forgotten: TransientError | None = None
        self._instance = ""
        self.parts: Parts | None = None

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
        self._process.stop.set()

    async def _run(self) -> None:
        settings = self._process.settings
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
                await in_daemon_thread("tracer-stop", tracer.stop)

    async def _serve(self, handler: OpenHandler) -> None:
        settings = self._process.settings
        metrics = MetricsRegistry()
        metrics.collect_from(self.readings)
        with service_server(settings, "processor", metrics, self._live, self.ready):
            admin = open_admin(settings.kafka)
            wait_topic = await self._when_reachable(lambda: self._check_topics(admin))
            if wait_topic is None:
                return
            life = HandlerLife(handler, self.fault)
            if not await life.open(lambda: self._process.ending(0)):
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
        drain_s = self._process.settings.processor.drain_timeout_s
        return max(LEFT_OVER_S, drain_s if self.parts is None else self.parts.run.left_s())

    def _check_topics(self, admin: AdminClient) -> TopicIdentity:
        require_brokers(self._process.settings, processor=True)
        require_topics(self._process.settings, "processor")
        wait = self._process.settings.wait
        return describe_wait_topic(admin, wait.topic, wait.partitions)

    async def _when_reachable(self, question: Callable[[], T]) -> T | None:
        """Ask the broker, repeatedly during an outage; return None if the process must stop."""
        process = self._process

        def pause_s(error: Exception) -> float | None:
            process.connection.is_down()
            log.warning("the broker doesn't answer yet: %s", error)
            return None if process.stop.is_set() else RETRY_START_S

        try:
            answer: T = await in_daemon_thread("start-checks", through_outage, question, pause_s, process.stop.wait)
        except TransientError:
            return None
        process.connection.answered()
        return answer

    async def work(self, handler: OpenHandler, admin: Admin, wait_topic: TopicIdentity) -> None:
        """Process records until the service is stopped."""
        process = self._process
        facts = await self._when_reachable(lambda: self.facts(admin, wait_topic))
        if facts is None:
            return
        self._instance = facts.instance
        self.stats.know_labels(facts.topics, process.settings.processor.retry.delays)
        parts = self.parts = build(process, facts, handler, admin, outbox_of(process), self._tracer)
        tasks = [task.start(self.fault) for task in parts.tasks]
        parts.watchdog.start()
        stall_watchdog = StallWatchdog(parts.watchdog.late_s)
        stall_watchdog.start()
        tune_gc()
        try:
            await parts.run.until(process.stop)
        finally:
            for task in tasks:
                task.cancel()
            stall_watchdog.stop()
            parts.watchdog.stop()
            # Tombstones of finished records; a record without an acknowledged tombstone expires and is dead-lettered.
            if left := await parts.loop.flush(LAST_FLUSH_S):
                log.warning("the outcomes of %d records aren't acknowledged by the broker at the end", left)
        # Errors of the last answers, which no iteration has seen.
        self.fault.raise_if_any()
        if self._forgotten is not None:
            raise self._forgotten

    def _brokers_forgotten(self, error: TransientError) -> None:
        """Stop as if requested: the other client may still write the outcomes of finished records."""
        log.error("%s", error)
        if not self._process.stop.is_set():
            self._forgotten = error
        self._process.stop.set()

    def facts(self, admin: Admin, wait_topic: TopicIdentity) -> Facts:
        """Ask the broker for what the processor needs to know before it starts."""
        if self._process.settings.processor.source is SourceKind.SHARE:
            if self._once:
                raise ConfigurationError(
                    "--once needs offsets, which a share group doesn't have: remove one of the two"
                )
            require_share_group(admin, self._process.settings.processor)
        elif self._process.replay is None:
            warn_of_lost_offsets(self._process.settings, admin)
        instance = self._process.settings.processor.instance or instance_name(self._process.clock)
        topics = subscription(self._process.settings, instance, topic_names(admin))
        own = [topic.name for topic in topics.values() if topic.own]
        if own and self._process.settings.processor.source is SourceKind.SHARE:
            log.warning("a share group doesn't consume the group's other topics: %s", ", ".join(sorted(own)))
        consumed = ConsumedTopics.look_up(admin, self._process.settings.processor.group, topics.values())
        ends = ends_now(admin, consumed.names) if self._once else None
        stop = None if ends is None else StopAtEnds(self._process.settings, ends, self._process.clock)
        return Facts(cluster_id(admin), instance, topics, consumed, wait_topic, stop)

    def readings(self) -> Iterator[Reading | HistogramReading]:
        """Return what /metrics shows."""
        yield from stats_readings(self.stats, self._process.connection)
        if self.parts is not None:
            yield from settings_readings(self._process.settings.processor, self._instance)
            yield from parts_readings(self.parts)

    def _live(self) -> Health:
        return Health.of([] if self.fault.error is None else [f"stopping: {type(self.fault.error).__name__}"])

    def ready(self) -> Health:
        """Return whether the processor works, with the reasons if it doesn't."""
        reasons = [] if self._process.connection.up else ["the broker can't be reached"]
        now_s = self._process.clock.monotonic()
        reasons += ["starting"] if self.parts is None else self.parts.condition(now_s).reasons()
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
