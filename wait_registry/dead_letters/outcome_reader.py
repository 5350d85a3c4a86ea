"""Reads what became of the records that a job redrove.

The order of reading is why a record that the tables don't show is settled. A record below its group's committed offset
was registered or settled before that offset was read, unless another program had moved the offset. Once the tables have
the wait topic up to the end that it has after that, a record without a registration is settled, or its next delivery is
in a retry topic. If it is a dead letter, the dead letter was written before the registration ended. So once the tables
have the dead letter topics up to the ends that these have after that, they show it.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final

from confluent_kafka import TopicPartition as KafkaPartition

from wait_registry.clock import Clock, SystemClock
from wait_registry.dead_letters.dead_letter import Reader, Redriven
from wait_registry.dead_letters.listing import Rows
from wait_registry.dead_letters.outcome import Committed, Outcome, outcome
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.commit_metadata import decode_metadata
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.positions import end_offsets
from wait_registry.postgres.queries import Queries
from wait_registry.records.dead_letter import dead_letter_topic
from wait_registry.records.topics import TopicPartition, input_of, is_topic_name
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)

QUERIES: Final = Queries("dead_letters")
# How long Kafka may take to answer, and the sink to come to where its topics end, s.
PATIENCE_S: Final = 3.0
_POLL_S: Final = 0.1
# No offset is larger.
ALL: Final = 2**63 - 1


class OutcomeReader:
    """Reads outcomes of the records of jobs, from Kafka and from the tables."""

    def __init__(
        self,
        settings: Settings,
        reader: Reader,
        clock: Clock | None = None,
        pause: Callable[[float], object] = time.sleep,
        patience_s: float | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            settings: of the cluster and the topics.
            reader: of the tables; each of its queries sees the newest rows.
            clock: for deadlines.
            pause: waits, s.
            patience_s: how long the tables may take to come to where their topics end; None for `PATIENCE_S`.
        """
        self._wait_topic = settings.wait.topic
        self._dead_letters = settings.dead_letter.topic
        self._kafka = settings.kafka.model_copy(update={"request_timeout_s": PATIENCE_S})
        self._reader = reader
        self._clock = clock or SystemClock()
        self._pause = pause
        self._patience_s = PATIENCE_S if patience_s is None else patience_s

    def of(self, job: str, after: int = 0, until: int = ALL, asks_kafka: bool = True) -> Counter[Outcome]:
        """Count the records that a job redrove by what became of them, as far as the tables have their marks.

        Args:
            job: its name.
            after: only records whose marks are beyond this offset of the operations topic.
            until: only records whose marks are not beyond this offset.
            asks_kafka: otherwise what the tables don't show is unknown.

        Raises:
            ConfigurationError: Kafka refuses us.
        """
        values = {"job": job, "after": after, "until": until}
        marks, known = self._rows("sent", values), self._rows("group_of_job", {"job": job})
        if not marks or not known:
            return Counter()
        ((group, topics),) = known
        committed = self._committed(group, {(topic, number) for _, topic, number, _ in marks} if asks_kafka else ())
        complete = bool(committed) and self._have([self._wait_topic])
        registered = {mark for (mark,) in self._rows("registered", values)}
        own = {dead_letter_topic(self._dead_letters, topic, group) for topic in self.inputs(job, group)}
        # Those of a deleted topic can't become more.
        complete = complete and self._have(filter(is_topic_name, own.union(topics)))
        dead = {mark for (mark,) in self._rows("dead_again", values)}
        counts = Counter[Outcome]()
        for mark, topic, number, offset in marks:
            found = committed.get((topic, number))
            consumed = None if found is None else found.consumed(offset)
            counts[outcome(consumed, mark in registered, mark in dead, complete)] += 1
        return counts

    def comebacks(self, job: str, group: str, after: int) -> list[int]:
        """Return the numbers of a job's consumed records that are dead letters again, ascending.

        Args:
            job: its name.
            group: its consumer group.
            after: as for `of`; the first record after it has the number 1.

        Raises:
            ConfigurationError: Kafka refuses us.
        """
        places = self._rows("targets", {"job": job, "after": after})
        committed = self._committed(group, places)
        values = {
            "topics": [topic for topic, _ in committed],
            "partitions": [number for _, number in committed],
            "committed": [found.offset for found in committed.values()],
        }
        return [number for (number,) in self._rows("comebacks", {"job": job, "after": after, **values})]

    def inputs(self, job: str, group: str) -> set[str]:
        """Return the input topics of the records that a job of a group redrove."""
        return {input_of(topic, group) for (topic,) in self._rows("inputs", {"job": job})}

    def _committed(self, group: str, places: Iterable[TopicPartition]) -> dict[TopicPartition, Committed]:
        """Return how far the group is, 0 where it has committed nothing; nothing if Kafka doesn't answer."""
        try:
            found = committed_offsets(self._kafka, group, places)
        except TransientError as error:
            log.warning("what group %s has consumed is unknown: %s", group, error)
            return {}
        return {(each.topic, each.partition): _committed_of(each) for each in found}

    def _have(self, topics: Iterable[str]) -> bool:
        """Wait a little until the tables have topics up to the ends that these have now; return whether they do."""
        wanted = {topic: self._positions(topic) for topic in topics}
        if not all(wanted.values()):
            return False  # our sink doesn't read it
        try:
            # High watermarks: what an open transaction has written counts as well.
            ends = {topic: end_offsets(self._client, topic, at, "read_uncommitted") for topic, at in wanted.items()}
        except TransientError as error:
            log.warning("how far the tables are behind is unknown: %s", error)
            return False
        deadline = self._clock.monotonic() + self._patience_s
        while not all(self._is_at(topic, at) for topic, at in ends.items()):
            if self._clock.monotonic() >= deadline:
                return False
            self._pause(_POLL_S)
        return True

    def _is_at(self, topic: str, ends: Mapping[int, int]) -> bool:
        positions = self._positions(topic)
        return all(positions.get(number, 0) >= end for number, end in ends.items())

    def _positions(self, topic: str) -> dict[int, int]:
        return dict(self._rows("positions", {"topic": topic}))

    @cached_property
    def _client(self) -> Admin:
        return admin(self._kafka)

    def _rows(self, query: str, values: dict[str, Any]) -> list[Any]:
        return self._reader.execute(QUERIES[query].encode(), values).fetchall()


def _committed_of(answer: KafkaPartition) -> Committed:
    recorded, offset = decode_metadata(answer.metadata, answer.offset), max(0, answer.offset)
    # Only processors write metadata of their offset, and keep in it what another program had passed.
    return Committed(offset, offset if recorded is None else recorded.kept_below or 0)


def outcome_rows(settings: Settings, reader: Reader, job: str) -> Rows:
    """Return what became of the records of a job, in the order in which records come to that.

    If Kafka refuses us, the log says why, and only what the tables show is known.
    """
    counts = _known(OutcomeReader(settings, reader), job)
    return Rows(["outcome", "records"], [(name.value, counts[name]) for name in Outcome if counts[name]])


def last_redrive(settings: Settings, reader: Reader, wait_id: str) -> Redriven | None:
    """Return the last redrive of a delivery and what became of its record; None if the tables show none."""
    found = reader.execute(QUERIES["last_redrive"].encode(), {"wait_id": wait_id}).fetchone()
    if found is None:
        return None
    mark, job, by, at = found
    # One of several things that are shown, so it doesn't wait for the sink.
    (became,) = _known(OutcomeReader(settings, reader, patience_s=0.0), job, mark - 1, mark) or (Outcome.UNKNOWN,)
    return Redriven(job, by, at, became)


def _known(outcomes: OutcomeReader, job: str, after: int = 0, until: int = ALL) -> Counter[Outcome]:
    try:
        return outcomes.of(job, after, until)
    except ConfigurationError as error:
        log.warning("what became of some records is unknown: %s", error)
        return outcomes.of(job, after, until, asks_kafka=False)
