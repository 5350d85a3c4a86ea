"""Sees where the logs of partitions end that aren't fetched: for their lag, and for when their records are due."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, TypeAlias

from confluent_kafka.admin import AdminClient

from processor.intake.assigned_log import AssignedLog
from processor.intake.subscription import SubscribedTopic
from wait_registry.daemon_threads import in_daemon_thread
from wait_registry.kafka.positions import ends_in_time, firsts_in_time
from wait_registry.records.topics import TopicPartition

ASK_EVERY_S: Final = 5.0

# Offset and timestamp, ms since the epoch, of the first record from a time on; both -1 if there is none.
First: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class LogEnds:
    """Asks the broker, since no fetch returns the end of a partition that is paused, nor which of its records are due.

    Args:
        admin: asks the broker.
        assigned: the logs of the assigned partitions.
        paused: the partitions of these that aren't fetched now.
        topics: the consumed topics, by name.
        seen: notes the ends of delayed partitions (`DueTimes.seen`), and returns the `seen_end` of each.
        now_ms: reads the wall clock.
    """

    admin: AdminClient
    assigned: Mapping[TopicPartition, AssignedLog]
    paused: AbstractSet[TopicPartition]
    topics: Mapping[str, SubscribedTopic]
    seen: Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]]
    now_ms: Callable[[], int]

    async def run_once(self) -> None:
        """Ask once; what the broker doesn't answer in time stays as it is."""
        now_ms = self.now_ms()
        # A later assignment of the same partition is another log.
        logs = dict(self.assigned)
        positions = {place: log.position for place, log in logs.items()}
        delays_ms = {place: round(1000 * self.topics[place[0]].delay_s) for place in logs}
        not_due = {place: now_ms - delay_ms + 1 for place, delay_ms in delays_ms.items() if delay_ms}
        asked = not_due.keys() | (self.paused & logs.keys())
        ends = await in_daemon_thread("log-ends", ends_in_time, self.admin, asked)
        still = [place for place in not_due if self.assigned.get(place) is logs[place]]
        seen_ends = self.seen({place: ends[place] for place in still if place in ends})
        since_ms = {place: not_due[place] for place in seen_ends}
        firsts = await in_daemon_thread("log-ends", firsts_in_time, self.admin, since_ms)
        for place, end in ends.items():
            logs[place].note_end(end)
            if place in firsts:
                logs[place].due_below(due_end(firsts[place], positions[place], end, seen_ends[place]))


def due_end(first: First, position: int, end: int, seen_end: int) -> int:
    """Return the offset below which the records of a delayed partition are due, `UNKNOWN_OFFSET` if nothing shows it.

    Args:
        first: the first record that isn't due by its timestamp. If it was handled all the same, its timestamp was in
            the future, and the broker doesn't say which one is the next.
        position: below which all records were due when the broker was asked.
        end: of the log.
        seen_end: the `DueTimes.seen_end`.
    """
    offset = end if first[0] < 0 else first[0]
    return max(offset, seen_end) if offset >= position else seen_end
