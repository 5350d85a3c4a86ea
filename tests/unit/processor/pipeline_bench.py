"""A whole processor on an event loop: a producer on librdkafka's own mock brokers, no brokers to consume."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from confluent_kafka import Producer

from processor.calls.attempts import Attempts
from processor.calls.deadline import DeadlineWatchdog
from processor.calls.retry_decision import RetryDecision, time_limits
from processor.fault import Fault
from processor.handlers.python import AsynchronousHandler, PlainFunctionHandler
from processor.health.broker_connection import BrokerConnection
from processor.health.stats import Stats
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.group_consumer import GroupConsumer
from processor.intake.membership import Membership
from processor.intake.partition_start import Start
from processor.intake.start_offsets import StartOffsets
from processor.intake.subscription import subscription
from processor.protocol.events import Polled
from processor.wiring import Context, Pipeline
from processor.writing.outbox import Outbox
from tests.unit.processor.parts import PLACE, done, taken
from wait_registry.clock import SystemClock
from wait_registry.handler import HandlerResult, Record
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata
from wait_registry.settings.root import Settings


class MockBrokerClock(SystemClock):
    """Its wall clock says what librdkafka's mock brokers write as a record's append time."""

    def now_ms(self) -> int:
        return 1234


CLOCK = MockBrokerClock()
WAIT_TOPIC = TopicIdentity("wait", "id", 4)


class PipelineBench:
    """Make it on a running event loop; partition 0 of `input` is assigned at offset 0, without a warm-up.

    ``commits`` are the offsets that were asked for.
    """

    def __init__(
        self,
        handler: Callable[[Record], Awaitable[HandlerResult]] | PlainFunctionHandler = done,
        producer: Mapping[str, object] | None = None,
        log: dict[str, object] | None = None,
        **processor_settings: object,
    ) -> None:
        given = {"topics": ["input"], "group": "group", "max_in_flight": 1, **processor_settings}
        # A mock broker makes topics of four partitions.
        others = {"kafka": {"bootstrap_servers": "127.0.0.1:1"}, "log": log or {}, "wait": {"partitions": 4}}
        settings = Settings.model_validate({**others, "processor": given})
        self.fault, self.stats, self.stop = Fault(), Stats(), threading.Event()
        self.producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, **(producer or {})})
        self.outbox = Outbox(self.producer, lambda: self.producer, 1_000_000, self.fault)
        self.context = self._context(settings, handler)
        self.pipeline = Pipeline(self.context)
        self.engine, self.shell = self.pipeline.engine, self.pipeline.shell
        assert isinstance(self.shell.consumer, GroupConsumer)
        self.group_consumer, self.pool = self.shell.consumer, self.shell.pool
        self.commits: list[int] = []
        self.group_consumer.commit = lambda commit: self.commits.extend(commit.offsets.values())  # type: ignore[method-assign]
        processor = settings.processor
        announced = CommitMetadata(WAIT_TOPIC).with_recorded(processor.uncommitted_max, processor.registration.value)
        self.shell.assigned([Start(*PLACE, 0, announced, 0)])

    def _context(self, settings: Settings, handler: Any) -> Context:
        processor, limits = settings.processor, time_limits(settings.processor)
        opened = handler if isinstance(handler, PlainFunctionHandler) else AsynchronousHandler(handler)
        decision = RetryDecision(processor, limits, lambda: 0.0)
        topics = subscription(settings, "instance", ())
        return Context(
            settings=settings,
            instance="instance",
            cluster_id="cluster",
            topics=topics,
            consumed=ConsumedTopics("group", {}, topics.values()),
            limits=limits,
            outbox=self.outbox,
            attempts=Attempts(opened, processor.handler_timeout_s, decision, CLOCK, self.stats),
            watchdog=DeadlineWatchdog(CLOCK, processor.handler_timeout_s),
            start_offsets=StartOffsets(
                WAIT_TOPIC, ConsumedTopics("group", {}), self.stop.wait, list, lambda places: {}, lambda places: {}
            ),
            connection=BrokerConnection(self.fault),
            membership=Membership(processor),
            clock=CLOCK,
            fault=self.fault,
            stats=self.stats,
            stop=self.stop,
            once=None,
        )

    def poll(self, *offsets: int, value: bytes = b"value") -> None:
        """Pass polled records on."""
        records = [taken(offset, value) for offset in offsets]
        self.shell.step(Polled(PLACE, offsets, records, [len(value)] * len(offsets)))

    async def run_until(self, condition: Callable[[], object]) -> None:
        """Take the broker's answers and let handlers run until the condition holds; the caller limits the time."""
        while not condition():
            self.producer.poll(0.001)
            self.shell.run_without_polling()
            await asyncio.sleep(0)

    def settled(self) -> bool:
        """Return whether no record is open and every outcome is acknowledged."""
        return not (self.engine.records or self.outbox.unacknowledged)
