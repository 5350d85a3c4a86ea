"""Partitions that are ours and can't begin yet: the broker hasn't told where."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from processor.fault import Fault
from processor.start_offsets import StartOffsets

log = logging.getLogger(__name__)

# The client hasn't begun with the partition yet, or is about to end what was there before.
_NOT_YET = frozenset({KafkaError._STATE, KafkaError._PREV_IN_PROGRESS, KafkaError._IN_PROGRESS})


class UnansweredStarts:
    """Asks in threads, so that neither a rebalance nor what is in hand waits for a broker that is slow to answer.

    All but the asking is done in the event loop's thread.

    Args:
        start_offsets: asked.
        loop: the event loop.
        fault: told what ends the process.

    Attributes:
        told: what has been answered, and nobody has begun with.
    """

    def __init__(self, start_offsets: StartOffsets, loop: asyncio.AbstractEventLoop, fault: Fault) -> None:
        self._start_offsets = start_offsets
        self._loop = loop
        self._fault = fault
        # By which question a partition's start is asked for: of one that went and came back the last one counts.
        self._questions: dict[tuple[str, int], object] = {}
        self.told: list[tuple[object, TopicPartition]] = []

    def __len__(self) -> int:
        """Return how many partitions can't begin yet; from any thread."""
        return len(self._questions)

    def ask(self, partitions: list[TopicPartition]) -> None:
        """Begin to ask for new partitions."""
        question = object()
        self._questions.update({(p.topic, p.partition): question for p in partitions})
        # Nobody waits for it: a broker that doesn't answer must not keep the process from ending.
        threading.Thread(target=self._ask, args=(question, list(partitions)), name="start-offsets", daemon=True).start()

    def forget(self, places: Iterable[tuple[str, int]]) -> None:
        """Take note that partitions are ours no more."""
        for place in places:
            self._questions.pop(place, None)

    def end(self) -> None:
        """Ask no more."""
        self._questions.clear()

    def begun(self, consumer: Consumer) -> list[TopicPartition]:
        """Have the consumer begin where it has been told, and return these partitions; not within a poll."""
        begun: list[TopicPartition] = []
        told, self.told = self.told, []
        for question, start in told:
            place = (start.topic, start.partition)
            if self._questions.get(place) is not question:
                continue
            if _sought(consumer, start):
                del self._questions[place]
                begun.append(start)
            else:
                self.told.append((question, start))
        return begun

    def _ask(self, question: object, partitions: list[TopicPartition]) -> None:
        try:
            starts = self._start_offsets.later(partitions, lambda: question in list(self._questions.values()))
        except Exception as error:  # noqa: BLE001 - whatever it is ends the process; the loop raises it
            self._fault.report(error)
            return
        told = [(question, start) for start in starts]
        # The loop may be gone by now: then nobody waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(lambda: self.told.extend(told))


def _sought(consumer: Consumer, start: TopicPartition) -> bool:
    try:
        consumer.seek(start)
    except KafkaException as error:
        if error.args[0].code() in _NOT_YET:
            return False
        raise
    return True
