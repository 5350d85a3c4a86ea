"""Where records come from, as the loop uses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

from processor.intake.assigned_log import AssignedLog
from processor.protocol.effects import Commit, Pause, Release, Resume
from processor.protocol.events import Polled
from wait_registry.records.topics import TopicPartition

# Waits for what is in flight of partitions, gives them up, and returns what to commit while they are still assigned.
OnRevoke: TypeAlias = Callable[[list[TopicPartition]], Awaitable[Release]]


class RecordSource(Protocol):
    """A member of the consumer group or of a share group, or the reader of a replay.

    It puts assignments, losses and the answers of commits into the inbox. A revocation is the one callback that waits
    for effects: it calls the ``on_revoke`` of the poll, or of the end, within which it comes.

    Attributes:
        assigned: the log of each partition whose records come from here.
    """

    assigned: dict[TopicPartition, AssignedLog]

    def start(self) -> None:
        """Begin to get records."""

    async def poll(
        self, count: int, timeout_s: float, fetching: Iterable[Pause | Resume], on_revoke: OnRevoke
    ) -> Sequence[Polled]:
        """Return at most ``count`` records that are there, by partition; wait for the first one up to a limit, s.

        Args:
            count: how many records at most.
            timeout_s: how long to wait for the first one, s.
            fetching: which partitions to stop fetching, or to fetch again, from this poll on, in order.
            on_revoke: called if partitions are revoked meanwhile.
        """

    def commit(self, commit: Commit) -> None:
        """Start a commit, not during a poll, since the client has other callers wait."""

    def rewind(self, place: TopicPartition, offset: int) -> None:
        """Have a partition, which is to be paused, continue at an offset when it is fetched again."""

    async def close(self, limit_s: float, on_revoke: OnRevoke) -> None:
        """Give everything up, within a limit, s; ``on_revoke`` is called for what is still assigned."""
