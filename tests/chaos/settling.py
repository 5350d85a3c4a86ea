"""When a run is over: everything consumed, nothing unresolved in the log, and the view at the log's ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from tests.chaos.stage import Place, Stage


@dataclass(slots=True)
class Patience:
    """Ends when nothing has changed for ``still_s``, or after ``most_s`` in all, whatever changes; s, of one clock.

    A busy machine makes everything slow, and that breaks no promise. What hangs, or goes round for ever, does.
    """

    still_s: float
    most_s: float
    _began_s: float | None = field(default=None, init=False)
    _changed_s: float = field(default=0.0, init=False)
    _seen: str = field(default="", init=False)

    def over(self, now_s: float, seen: str) -> bool:
        """Return whether to wait no longer, now that this is what is left to do."""
        if self._began_s is None:
            self._began_s = self._changed_s = now_s
        if seen != self._seen:
            self._seen, self._changed_s = seen, now_s
        return now_s - self._changed_s >= self.still_s or now_s - self._began_s >= self.most_s


ANSWER_S = 5.0
BATCH = 5000
LOOK_S = 0.3

Offsets = dict[tuple[str, int], int]


def settle(stage: Stage, place: Place, patience: Patience, broken_off: threading.Event | None = None) -> str:
    """Wait until nothing is left to do, as long as the patience lasts and nobody interrupts it; return what is left."""
    pause = time.sleep if broken_off is None else broken_off.wait
    with Settling(place, stage.stack.bootstrap_servers, stage.stack.postgres_url) as settling:
        while unsettled := settling.unsettled():
            if patience.over(time.monotonic(), unsettled) or (broken_off is not None and broken_off.is_set()):
                return unsettled
            pause(LOOK_S)
    return ""


class Settling:
    """Follows the topics of a run from their beginning; a context manager."""

    def __init__(self, place: Place, bootstrap: str, postgres_url: str) -> None:
        self._settings = place.settings
        self._consumed = place.consumed
        self._postgres_url = postgres_url
        self._letters = place.settings.dead_letter.topic
        common = {"bootstrap.servers": bootstrap, "enable.auto.commit": False, "log_level": 0}
        self._reader = Consumer({**common, "group.id": f"{place.settings.processor.group}.looks-on"})
        self._offsets = Consumer({**common, "group.id": place.settings.processor.group})
        self._assigned: set[tuple[str, int]] = set()
        self._standing: set[bytes] = set()
        self._next: Offsets = {}

    def __enter__(self) -> Settling:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._reader.close()
        self._offsets.close()

    def unsettled(self) -> str:
        """Say what isn't over yet, in a few words; empty when all is."""
        try:
            ends = self._ends([self._settings.wait.topic, self._letters, *self._consumed])
            self._read_to(ends)
            waited_for = self._unconsumed() or self._unresolved() or self._unshown(ends)
            return waited_for or ("" if self._ends(list({topic for topic, _ in ends})) == ends else "the log grows")
        except (KafkaException, psycopg.Error, TimeoutError) as error:
            # Slow, or just back: whoever asks, asks again. Of topics that are as they were made these errors pass.
            return f"no answer: {error}".strip()

    def _ends(self, topics: Sequence[str]) -> Offsets:
        ends: Offsets = {}
        for topic in topics:
            known = self._reader.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
            if not known:
                raise TimeoutError(f"no answer about {topic}")
            for partition in known:
                place = TopicPartition(topic, partition)
                ends[(topic, partition)] = self._reader.get_watermark_offsets(place, timeout=ANSWER_S)[1]
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
                error: KafkaError | None = message.error()
                if error is not None:
                    raise KafkaException(error)
                self._next[(message.topic(), message.partition())] = message.offset() + 1
                if message.topic() == self._settings.wait.topic:
                    (self._standing.discard if message.value() is None else self._standing.add)(message.key())

    def _position(self, place: tuple[str, int]) -> int:
        # Behind the markers of transactions too.
        (position,) = self._reader.position([TopicPartition(*place)])
        return max(int(position.offset), 0)

    def _unconsumed(self) -> str:
        asked = [TopicPartition(*place) for place in self._next if place[0] in self._consumed]
        answers = self._offsets.committed(asked, timeout=ANSWER_S) if asked else []
        behind = sum(max(self._next[(a.topic, a.partition)] - max(a.offset, 0), 0) for a in answers)
        return f"{behind} records aren't consumed" if behind else ""

    def _unresolved(self) -> str:
        return f"{len(self._standing)} registrations are in the log" if self._standing else ""

    def _unshown(self, ends: Offsets) -> str:
        options = f"-c search_path={self._settings.postgres.schema_name} -c statement_timeout=5s"
        with psycopg.connect(self._postgres_url, options=options, connect_timeout=5) as connection:
            rows = connection.execute("select count(*) from wait").fetchall()[0][0]
            progress = connection.execute("select topic, partition, next_offset from sink_progress").fetchall()
        shown = {(topic, partition): offset for topic, partition, offset in progress}
        viewed = {place: end for place, end in ends.items() if place[0] in (self._settings.wait.topic, self._letters)}
        behind = sum(end - shown.get(place, 0) for place, end in viewed.items())
        if behind:
            return f"the sink is {behind} entries behind"
        return f"{rows} rows are in the table wait" if rows else ""
