"""How far a consumer group is in a topic, seen from outside by the offsets that it commits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.contenders.progress_steps import Pace, Step, pace, warm
from wait_registry.errors import TransientError
from wait_registry.kafka.clients import consumer_config
from wait_registry.kafka.errors import kafka_failure
from wait_registry.settings.kafka import KafkaSettings

POLL_S: Final = 0.1
ANSWER_S: Final = 10.0
START_S: Final = 120.0
# What a JVM compiles meanwhile doesn't count.
WARM_S: Final = 10.0
# The last commit may come long after the last record.
NEAR_THE_END: Final = 0.95


class NoProgress(RuntimeError):
    """The group committed nothing that a pace could be worked out from."""


class GroupProgress:
    """Asks for a group's offsets; by a consumer that never joins it, since an administrative client may crash there."""

    def __init__(self, kafka: KafkaSettings, group: str, topic: str, partitions: int) -> None:
        """Describe whom to ask for what; the group need not exist yet."""
        self._asked = [TopicPartition(topic, number) for number in range(partitions)]
        self._consumer = Consumer(consumer_config(kafka, **{"group.id": group}))
        self._doing = f"reading the offsets of group {group}"

    def records(self) -> int:
        """Return how many records are committed over all partitions; what comes of a broker that isn't ready is 0.

        Right for a topic that begins at 0 and holds no markers of transactions.
        """
        try:
            places = self._consumer.committed(self._asked, timeout=ANSWER_S)
        except KafkaException as error:
            failure = kafka_failure(error, self._doing)
            if isinstance(failure, TransientError):
                return 0
            raise failure from error
        return sum(max(0, place.offset) for place in places)

    def close(self) -> None:
        """Let go of the broker."""
        self._consumer.close()


@contextmanager
def progress_of(kafka: KafkaSettings, group: str, topic: str, partitions: int) -> Iterator[GroupProgress]:
    """Watch a group within a block."""
    progress = GroupProgress(kafka, group, topic, partitions)
    try:
        yield progress
    finally:
        progress.close()


def follow(
    progress: GroupProgress,
    records: int,
    limit_s: float,
    cpu_s: Callable[[], float],
    require_running: Callable[[], None],
) -> list[Step]:
    """Watch a group until it has committed so many records, or for a while; return every step that it made.

    Args:
        progress: of the group.
        records: how many the topic holds.
        limit_s: how long from the first commit on, s.
        cpu_s: returns the CPU time that the group's process has used.
        require_running: raises when that process no longer works.

    Raises:
        NoProgress: it committed nothing at all.
    """
    steps = [Step(time.monotonic(), 0, cpu_s())]
    deadline = time.monotonic() + START_S
    while steps[-1].records < records and time.monotonic() < deadline:
        require_running()
        done = progress.records()
        if done > steps[-1].records:
            if len(steps) == 1:
                deadline = time.monotonic() + limit_s
            steps.append(Step(time.monotonic(), done, cpu_s()))
        time.sleep(POLL_S)
    if len(steps) == 1:
        raise NoProgress(f"nothing was committed in {START_S:g} s")
    return steps


def warm_pace(steps: Sequence[Step], records: int, stretch: tuple[int, int] | None) -> Pace:
    """Return the pace within a stretch of the topic; pure.

    Args:
        steps: what `follow` saw.
        records: how many the topic holds.
        stretch: from which record to which; from where a contender counts as warm to near the end when None. Whoever
            didn't get to the stretch's end is measured from some seconds after its first commit to its last one.
    """
    done = steps[-1].records
    first, last = stretch or (warm(records), round(records * NEAR_THE_END))
    if done >= last:
        return pace(steps, first, last)
    late = [step for step in steps if step.at_s >= steps[1].at_s + WARM_S]
    return pace(late if len(late) > 1 else steps, 0, done)
