"""Looks at the cluster from outside, again and again while a run continues."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Self

from confluent_kafka import Consumer, KafkaException

from tests.chaos.companion import Companion
from tests.chaos.history.history import Look, Partition
from tests.chaos.history.reading import Where
from tests.chaos.history.topics import committed_of, end_of, partitions_of, reader

ANSWER_S = 2.0
METADATA_S = 1.0


class Watch(Companion):
    """Polls in a thread of its own, with clients of its own; a context manager.

    Each look asks, in this order: the group's committed offsets; last stable offsets and then ends of the wait topic;
    ends of the dead letter and redelivery topics. So whatever a later answer lacks was not there when the earlier one
    was true. A broker that is away is waited out: a look without all its answers is skipped.

    Args:
        where: the broker, not by way of a faulty link, and the names of topics and group. Redelivery topics are watched
            too as soon as they are there.
        interval_s: from the end of a look to the beginning of the next one, s.
    """

    def __init__(self, where: Where, interval_s: float = 0.2) -> None:
        self.looks: list[Look] = []
        self._where = where
        self._consumed = (*where.inputs, *where.redelivery_topics)
        self._letters = (*where.letter_topics, *where.redelivery_topics)
        self._partitions: dict[str, Sequence[int]] = {}
        self._asked_s = -METADATA_S
        self._open = ExitStack()
        super().__init__("watch", interval_s, self._look_while_possible)

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._committed = reader(self._where.bootstrap, "read_committed", self._where.group)
            opened.callback(self._committed.close)
            self._uncommitted = reader(self._where.bootstrap, "read_uncommitted")
            opened.callback(self._uncommitted.close)
            self._open = opened.pop_all()
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, *of_no_interest: object) -> None:
        with self._open:
            super().__exit__(kind, *of_no_interest)

    def _look_while_possible(self) -> None:
        with suppress(KafkaException):
            self.looks.append(self._look(self._committed, self._uncommitted))

    def _look(self, committed: Consumer, uncommitted: Consumer) -> Look:
        self._learn_partitions(uncommitted)
        began_ms = _now_ms()
        offsets = committed_of(committed, self._places(self._consumed), ANSWER_S)
        waits = self._places([self._where.wait_topic])
        stable = {place[1]: end_of(committed, place, ANSWER_S) for place in waits}
        ends = {place[1]: end_of(uncommitted, place, ANSWER_S) for place in waits}
        letters = {place: end_of(uncommitted, place, ANSWER_S) for place in self._places(self._letters)}
        return Look(began_ms, _now_ms(), offsets, stable, ends, letters)

    def _learn_partitions(self, consumer: Consumer) -> None:
        # Partitions are added, and redelivery topics made, while the run continues.
        if time.monotonic() < self._asked_s + METADATA_S:
            return
        for topic in {*self._consumed, self._where.wait_topic, *self._letters}:
            self._partitions[topic] = partitions_of(consumer, topic, ANSWER_S)
        self._asked_s = time.monotonic()

    def _places(self, topics: Iterable[str]) -> list[Partition]:
        return [(topic, number) for topic in topics for number in self._partitions[topic]]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
