"""When a run is over: everything consumed, nothing unresolved in the log, and the tables at the log's ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from tests.chaos.history.history import Partition
from tests.chaos.history.watch import committed_of, end_of, partitions_of
from tests.chaos.stage import Place
from wait_registry.kafka.topic_specs import redelivery_topics, retry_topics

ANSWER_S = 5.0
BATCH = 5000
POLL_S = 0.3

Offsets = dict[Partition, int]


def settle(
    place: Place,
    still_s: float,
    most_s: float,
    interrupted: threading.Event | None = None,
    said: Callable[[str], object] = lambda unsettled: None,
) -> str:
    """Wait until nothing is left to do; return what is left if nothing changed for ``still_s``, or after ``most_s``.

    ``said`` gets what is left at each poll. A busy machine makes everything slow, which violates no guarantee. A
    service that hangs, or loops, does.
    """
    interrupted = interrupted or threading.Event()
    began_s = changed_s = time.monotonic()
    seen = ""
    with Settling(place) as settling:
        while unsettled := settling.unsettled():
            now_s = time.monotonic()
            said(unsettled)
            if unsettled != seen:
                seen, changed_s = unsettled, now_s
            if now_s - changed_s >= still_s or now_s - began_s >= most_s or interrupted.wait(POLL_S):
                return unsettled
    return ""


class Settling:
    """Follows what a group consumes from the beginning, and how far the tables are; a context manager."""

    def __init__(self, place: Place) -> None:
        self._settings = place.settings
        settings = place.settings
        self._shown = [settings.wait.topic, settings.dead_letter.topic, settings.operations.topic]
        self._consumed = [place.input, *redelivery_topics(place.settings), *retry_topics(place.settings)]
        group, bootstrap = place.settings.processor.group, place.settings.kafka.bootstrap_servers
        # Of retry and redelivery topics the processors delete what they have committed.
        common: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
        self._reader = Consumer({**common, "group.id": f"{group}.settling"})
        self._offsets = Consumer({**common, "group.id": group})
        self._assigned: set[Partition] = set()
        self._next: Offsets = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self._reader.close()
        self._offsets.close()

    def unsettled(self) -> str:
        """Return what isn't over yet, in a few words; empty when all is."""
        try:
            consumed, shown = self._ends(self._consumed), self._ends(self._shown)
            self._read_to(consumed)
            if waited_for := self._unconsumed() or self._unshown(shown):
                return waited_for
            return "" if (self._ends(self._consumed), self._ends(self._shown)) == (consumed, shown) else "the log grows"
        except (KafkaException, psycopg.Error, TimeoutError) as error:
            # Slow, or just available again: the next poll may get an answer.
            return f"no answer: {error}".strip()

    def _ends(self, topics: Sequence[str]) -> Offsets:
        ends: Offsets = {}
        for topic in topics:
            known = partitions_of(self._reader, topic, ANSWER_S)
            if not known:
                raise TimeoutError(f"no answer about {topic}")
            ends |= {(topic, number): end_of(self._reader, (topic, number), ANSWER_S) for number in known}
        return ends

    def _read_to(self, ends: Offsets) -> None:
        for topic, partition in sorted(set(ends) - self._assigned):
            self._reader.incremental_assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
            self._assigned.add((topic, partition))
        while any(self._position(place) < end for place, end in ends.items()):
            messages = self._reader.consume(BATCH, 0.5)
            if not messages:
                raise TimeoutError("the topics can't be read to their ends: a transaction is open, or no answer")
            for message in messages:
                if message.error() is not None:
                    raise KafkaException(message.error())
                self._next[message.topic(), message.partition()] = message.offset() + 1

    def _position(self, place: Partition) -> int:
        # Behind the markers of transactions too.
        (position,) = self._reader.position([TopicPartition(*place)])
        return int(position.offset) if position.offset >= 0 else self._beginning(place)

    def _beginning(self, place: Partition) -> int:
        answer = self._reader.get_watermark_offsets(TopicPartition(*place), timeout=ANSWER_S, cached=False)
        return 0 if answer is None else int(answer[0])

    def _unconsumed(self) -> str:
        done = committed_of(self._offsets, list(self._next), ANSWER_S)
        behind = sum(max(end - done.get(place, 0), 0) for place, end in self._next.items())
        return f"{behind} records aren't consumed" if behind else ""

    def _unshown(self, ends: Offsets) -> str:
        url, schema = self._settings.postgres.url.get_secret_value(), self._settings.postgres.schema_name
        options = f"-c search_path={schema} -c statement_timeout=5s"
        with psycopg.connect(url, options=options, connect_timeout=5) as connection:
            rows = connection.execute("select count(*) from wait").fetchall()[0][0]
            progress = connection.execute("select topic, partition, next_offset from sink_progress").fetchall()
        shown = {(topic, partition): offset for topic, partition, offset in progress}
        behind = sum(end - shown.get(place, 0) for place, end in ends.items())
        if behind:
            return f"the sink is {behind} entries behind"
        return f"{rows} rows are in the table wait" if rows else ""
