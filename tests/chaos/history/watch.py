"""Asks the broker from outside, again and again, during a run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from typing import Any

from confluent_kafka import KafkaException

from tests.chaos.companion import Companion
from tests.chaos.history.history import Partition, Poll, topics_again
from tests.chaos.history.topics import committed_of, end_of, partitions_of, reader
from wait_registry.settings.root import Settings

ANSWER_S = 2.0
METADATA_S = 1.0


class Watch(Companion):
    """Polls in a thread of its own, with clients of its own; a context manager.

    Each poll asks for the fields of `Poll` in their order. A poll without all its answers is skipped. Redelivery topics
    are watched once they exist.
    """

    def __init__(self, settings: Settings, interval_s: float = 0.2) -> None:
        self.polls: list[Poll] = []
        self._settings = settings
        self._consumed = (*settings.processor.topics, *topics_again(settings))
        self._letters = (settings.dead_letter.topic, *topics_again(settings))
        self._partitions: dict[str, Sequence[int]] = {}
        self._asked_s = -METADATA_S
        bootstrap = settings.kafka.bootstrap_servers
        self._committed = reader(bootstrap, "read_committed", settings.processor.group)
        self._uncommitted = reader(bootstrap, "read_uncommitted")
        super().__init__("watch", interval_s, self._poll_if_possible)

    def __exit__(self, *raised: Any) -> None:
        with closing(self._committed), closing(self._uncommitted):
            super().__exit__(*raised)

    def _poll_if_possible(self) -> None:
        with suppress(KafkaException):
            self.polls.append(self._poll())

    def _poll(self) -> Poll:
        self._learn_partitions()
        began_ms = time.time_ns() // 1_000_000
        offsets = committed_of(self._committed, self._places(self._consumed), ANSWER_S)
        waits = self._places([self._settings.wait.topic])
        stable = {place[1]: end_of(self._committed, place, ANSWER_S) for place in waits}
        ends = {place[1]: end_of(self._uncommitted, place, ANSWER_S) for place in waits}
        letters = {place: end_of(self._uncommitted, place, ANSWER_S) for place in self._places(self._letters)}
        return Poll(began_ms, time.time_ns() // 1_000_000, offsets, stable, ends, letters)

    def _learn_partitions(self) -> None:
        # Faults add partitions, and redelivery topics are created, during the run.
        if time.monotonic() < self._asked_s + METADATA_S:
            return
        for topic in {*self._consumed, self._settings.wait.topic, *self._letters}:
            self._partitions[topic] = partitions_of(self._uncommitted, topic, ANSWER_S)
        self._asked_s = time.monotonic()

    def _places(self, topics: Iterable[str]) -> list[Partition]:
        return [(topic, number) for topic in topics for number in self._partitions[topic]]
