"""Where records come from, as the shell and the pipeline use it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sized
from collections.abc import Set as AbstractSet
from typing import Protocol

from confluent_kafka import KafkaError, Message
from confluent_kafka import TopicPartition as Answer

from processor.intake.assigned_log import AssignedLog
from processor.intake.partition_start import Start
from processor.protocol.effects import Commit, Release
from wait_registry.records.topics import TopicPartition


class Listener(Protocol):
    """What a rebalance or a commit calls, in the event loop's thread, one call at a time."""

    def assigned(self, starts: list[Start]) -> None:
        """Take partitions over; nothing of them has been polled yet."""

    async def revoked(self, places: list[TopicPartition]) -> Release:
        """Release partitions and return what to commit while they are still assigned here."""

    def lost(self, places: list[TopicPartition]) -> None:
        """Release partitions that another member may have already; no commit is possible."""

    def commit_answered(self, error: KafkaError | None, partitions: list[Answer], to: Release | None = None) -> None:
        """Take the answer of a commit: of a last one, if it is given, else of the asynchronous ones in their order."""


class RecordSource(Protocol):
    """A member of the consumer group, or the reader of a replay.

    Attributes:
        polling: the event loop must not use the client meanwhile.
        assigned: the log of each partition whose records come from here.
        pending_starts: the partitions that can't start yet.
        paused: the partitions that aren't fetched now, so that no fetch returns their ends.
    """

    assigned: dict[TopicPartition, AssignedLog]

    @property
    def polling(self) -> bool:
        """Whether a poll runs in another thread."""

    @property
    def pending_starts(self) -> Sized:
        """The partitions that can't start yet."""

    @property
    def paused(self) -> AbstractSet[TopicPartition]:
        """The partitions that aren't fetched now."""

    def subscribe(self, topics: Iterable[str]) -> None:
        """Begin to get records."""

    async def poll(self, count: int, timeout_s: float) -> Mapping[TopicPartition, list[Message]]:
        """Return at most ``count`` records that are there, by partition; wait for the first one up to a limit, s."""

    def commit(self, commit: Commit) -> None:
        """Start a commit, whose answer goes to the listener; KafkaException when it can't even be started."""

    def pause(self, places: Collection[TopicPartition]) -> None:
        """Stop fetching partitions."""

    def resume(self, places: Collection[TopicPartition]) -> None:
        """Fetch partitions again, at once."""

    def rewind(self, place: TopicPartition, offset: int) -> None:
        """Have a paused partition continue at an offset after `resume`."""

    def read_ends(self) -> None:
        """Note the ends of the assigned partitions, for the lag."""

    async def close(self, limit_s: float) -> None:
        """Give everything up; the listener's ``revoked`` is called for what is still assigned."""
