"""The whole registry strategy on an event loop: a producer on librdkafka's own mock brokers, no brokers to consume."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable

from confluent_kafka import Producer

from processor.assigned_partition import AssignedPartition
from processor.attempts import Attempts
from processor.broker_connection import BrokerConnection
from processor.consumed_topics import ConsumedTopics
from processor.deadline import DeadlineWatchdog
from processor.ending import Fault
from processor.entry import Entry, EntryState, Lifetime
from processor.handlers.python import AsynchronousHandler, PlainFunctionHandler
from processor.membership import Membership
from processor.outbox import Outbox
from processor.pipeline import Context, Pipeline
from processor.retry_decision import RetryDecision, time_limits
from processor.start_offsets import StartOffsets
from processor.stats import Stats
from processor.subscription import subscription
from tests.unit.processor.parts import LONG, entry
from wait_registry.clock import SystemClock
from wait_registry.handler import HandlerResult, Record
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.settings.root import Settings

CLOCK = SystemClock()
OVERDUE = LONG._replace(start_by_s=-1.0)


async def done(record: Record) -> HandlerResult:
    """Handle a record at once."""
    return None


class PipelineBench:
    """Make it on a running event loop; ``owner`` is an assigned partition whose gate is closed."""

    def __init__(
        self,
        handler: Callable[[Record], Awaitable[HandlerResult]] | PlainFunctionHandler = done,
        drain_timeout_s: float = 10.0,
        flush_timeout_s: float = 10.0,
        producer: dict[str, object] | None = None,
        log: dict[str, object] | None = None,
        **processor_settings: object,
    ) -> None:
        settings = Settings.model_validate(
            {
                "kafka": {"bootstrap_servers": "127.0.0.1:1"},
                "log": log or {},
                "processor": {
                    "topics": ["input"],
                    "group": "group",
                    "max_in_flight": 1,
                    "drain_timeout_s": drain_timeout_s,
                    "flush_timeout_s": flush_timeout_s,
                    **processor_settings,
                },
            }
        )
        processor = settings.processor
        opened = handler if isinstance(handler, PlainFunctionHandler) else AsynchronousHandler(handler)
        limits = time_limits(processor)
        self.fault, self.stats, self.stop = Fault(), Stats(), threading.Event()
        self.producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, **(producer or {})})
        self.outbox = Outbox(self.producer, self.fault)
        decision = RetryDecision(processor, limits, lambda: 0.0)
        self.context = Context(
            settings=settings,
            instance="instance",
            cluster_id="cluster",
            commit_metadata={"input": ""},
            topics=subscription(settings, "instance", ()),
            limits=limits,
            producer=self.producer,
            outbox=self.outbox,
            attempts=Attempts(opened, processor.handler_timeout_s, decision, CLOCK, self.stats),
            watchdog=DeadlineWatchdog(CLOCK, processor.handler_timeout_s),
            start_offsets=StartOffsets(
                TopicIdentity("wait", "id", 1), ConsumedTopics("group", {}), self.stop.wait, list
            ),
            connection=BrokerConnection(self.fault),
            membership=Membership(processor),
            clock=CLOCK,
            fault=self.fault,
            stats=self.stats,
            stop=self.stop,
            once=None,
        )
        self.pipeline = Pipeline(self.context)
        self.poll_loop = self.pipeline.poll_loop
        self.dispatcher = self.pipeline.dispatcher
        self.registration = self.pipeline.registration
        self.outstanding = self.pipeline.outstanding
        self.committable = self.pipeline.committable
        self.group_consumer = self.pipeline.group_consumer
        self.commits = self.poll_loop.commits
        self.rebalance = self.poll_loop.rebalance
        self.owner = AssignedPartition("input", 0, 0)
        self.group_consumer.assigned["input", 0] = self.owner

    def registered(self, offset: int, state: EntryState, lifetime: Lifetime = LONG) -> Entry:
        """Return a record of the partition that is registered and counts as unfinished."""
        one = entry(self.owner, offset, lifetime)
        one.wait_partition, one.wait_offset, one.state = 0, offset, state
        self.outstanding.add(1, one.size)
        return one

    def answer_until(self, condition: Callable[[], object]) -> None:
        """Serve delivery reports until the condition holds; the caller limits the time."""
        while not condition():
            self.producer.poll(0.01)
