"""A whole processor on an event loop: a producer on librdkafka's own mock brokers, no brokers to consume."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from confluent_kafka import Producer

from processor.handlers.python import AsynchronousHandler, PlainFunctionHandler
from processor.health.broker_connection import BrokerConnection
from processor.inbox import Inbox
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.group_consumer import GroupConsumer
from processor.intake.subscription import subscription
from processor.protocol.events import Assigned, Polled
from processor.wiring import Facts, Process, build
from processor.writing.outbox import Outbox
from tests.unit.processor.parts import PLACE, delivery, done
from wait_registry.clock import SystemClock
from wait_registry.handler import HandlerResult, Record
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.settings.tree import Settings


class MockBrokerClock(SystemClock):
    """Its wall clock says what librdkafka's mock brokers write as a record's append time."""

    def now_ms(self) -> int:
        return 1234


CLOCK = MockBrokerClock()
WAIT_TOPIC = TopicIdentity("wait", "id", 4)


class LoopBench:
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
        self.stop = threading.Event()
        inbox = Inbox()
        self.fault, self.stats = inbox.fault, inbox.stats
        self.producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, **(producer or {})})
        self.outbox = Outbox(self.producer, lambda: self.producer, 1_000_000, self.fault)
        connection = BrokerConnection(self.fault)
        process = Process(settings, CLOCK, lambda: 0.0, inbox, connection, self.stop)
        topics = subscription(settings, "instance", ())
        consumed = ConsumedTopics("group", dict.fromkeys(topics, "id"), topics.values())
        facts = Facts("cluster", "instance", topics, consumed, WAIT_TOPIC)
        opened = handler if isinstance(handler, PlainFunctionHandler) else AsynchronousHandler(handler)
        nobody: Any = None
        self.parts = build(process, facts, opened, nobody, self.outbox)
        self.loop, self.watchdog, self.membership = self.parts.loop, self.parts.watchdog, self.parts.membership
        self.engine, self.pool = self.loop.engine, self.loop.calls
        assert isinstance(self.loop.source, GroupConsumer)
        self.group_consumer = self.loop.source
        self.commits: list[int] = []
        self.group_consumer.commit = lambda commit: self.commits.extend(commit.offsets.values())  # type: ignore[method-assign]
        processor = settings.processor
        self.loop.step(Assigned(PLACE, 0, processor.uncommitted_max, processor.registration.value, 0))

    def poll(self, *offsets: int, value: bytes = b"value") -> None:
        """Pass polled records on."""
        records = [delivery(offset, value) for offset in offsets]
        self.loop.step(Polled(PLACE, offsets, records, [len(value)] * len(offsets)))

    async def run_until(self, condition: Callable[[], object]) -> None:
        """Take the broker's answers and let handlers run until the condition holds; the caller limits the time."""
        while not condition():
            self.producer.poll(0.001)
            self.loop.run_without_polling()
            await asyncio.sleep(0)

    def settled(self) -> bool:
        """Return whether no record is open and every outcome is acknowledged."""
        return not (self.engine.records or self.outbox.unacknowledged)
