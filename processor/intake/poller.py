"""Polls a client in its thread; records that trickle in are gathered."""

from __future__ import annotations

import time
from dataclasses import dataclass

from confluent_kafka import Consumer, Message

from processor.flow.gathering import Gathering
from processor.intake.consumer_thread import ConsumerThread
from processor.intake.polled_messages import PolledMessages
from wait_registry.records.topics import TopicPartition


@dataclass(frozen=True, slots=True)
class Poller:
    """Returns the records of each poll by partition.

    Args:
        consumer: is polled.
        thread: polls it.
        messages: sorts what comes.
        gathering: says how long to rest before a poll. The thread rests, so that a rest costs no further wake-up.
    """

    consumer: Consumer
    thread: ConsumerThread
    messages: PolledMessages
    gathering: Gathering

    async def poll(self, count: int, timeout_s: float) -> dict[TopicPartition, list[Message]]:
        """Return at most ``count`` records that are there; wait for the first one up to a limit, s."""
        rest_s = min(timeout_s, self.gathering.rest_s(time.monotonic()))
        messages, waited = await self.thread.poll(_poll, self.consumer, count, timeout_s - rest_s, rest_s)
        records = self.messages.sort(messages)
        self.gathering.came(sum(map(len, records.values())), count, waited, time.monotonic())
        return records


def _poll(consumer: Consumer, count: int, timeout_s: float, rest_s: float) -> tuple[list[Message], bool]:
    """Rest while the client fetches; return at most ``count`` messages, and whether the first one was waited for."""
    if rest_s > 0:
        time.sleep(rest_s)
    messages: list[Message] = consumer.consume(count, 0)
    if messages or timeout_s <= 0:
        return messages, False
    # Asked for several, the client would wait until all of them are there.
    first = consumer.poll(timeout_s)
    if first is None or count == 1:
        return [] if first is None else [first], True
    rest: list[Message] = consumer.consume(count - 1, 0)
    return [first, *rest], True
