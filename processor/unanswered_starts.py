"""Partitions that are ours and can't begin yet: the broker hasn't told where."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from contextlib import suppress

from confluent_kafka import TopicPartition

from processor.fault import Fault
from processor.start_offsets import StartOffsets


class UnansweredStarts:
    """Asks in threads, so that neither a rebalance nor what is in hand waits for a broker that is slow to answer.

    All but the asking is done in the event loop's thread.

    Args:
        start_offsets: asked.
        loop: the event loop.
        fault: told what ends the process.

    Attributes:
        told: what has been answered, and nobody has taken, with its question.
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
        self.told.clear()

    def taken(self) -> list[TopicPartition]:
        """Return the starts that were told, once, but for those of partitions that have gone meanwhile."""
        told, self.told = self.told, []
        starts = [start for question, start in told if self._questions.get((start.topic, start.partition)) is question]
        self.forget((start.topic, start.partition) for start in starts)
        return starts

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
