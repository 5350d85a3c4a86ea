"""Where records come from, as the loop uses it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from processor.flow.gathering import Gathering
from processor.health.broker_connection import BrokerConnection
from processor.inbox import Inbox
from processor.intake.assigned_log import AssignedLog
from processor.intake.consumer_thread import ConsumerThread
from processor.intake.delivery import Deliveries
from processor.intake.membership import Membership
from processor.intake.start_decision import Start
from processor.protocol.effects import Commit, Pause, Release, Resume
from processor.protocol.events import Polled
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.tree import Settings

# Waits for what is in flight of partitions, gives them up, and returns what to commit while they are still assigned.
OnRevoke: TypeAlias = Callable[[list[TopicPartition]], Awaitable[Release]]


@dataclass(eq=False)
class RecordSource(ABC):
    """A member of the consumer group or of a share group, or the reader of a replay.

    It puts assignments, losses and the answers of commits into the inbox. A revocation is the one callback that waits
    for effects: it calls the ``on_revoke`` of the poll, or of the end, within which it comes.

    Args:
        settings: group, topics and cluster.
        inbox: gets assignments, losses, the answers of commits, and errors that end the process.
        deliveries: decodes what is polled.
        connection: takes the client's events.
        membership: knows what is assigned here, and says when to join the group again.

    Attributes:
        assigned: the log of each partition whose records come from here.
        thread: polls the client.
        gathering: knows whether records trickle in.
    """

    settings: Settings
    inbox: Inbox
    deliveries: Deliveries
    connection: BrokerConnection
    membership: Membership

    def __post_init__(self) -> None:
        self.assigned: dict[TopicPartition, AssignedLog] = {}
        self.thread = ConsumerThread()
        self.gathering = Gathering(self.settings.processor.gather_ms / 1000)

    def _take_over(self, starts: Iterable[Start]) -> None:
        """Report new partitions, whose records are polled from their start offsets on."""
        for start in starts:
            self.assigned[start[:2]] = AssignedLog(start[:2], start.offset, start.emptied_id)
            self.inbox.put(self.deliveries.assigned(start))
        self.inbox.stats.rebalanced("assigned")

    @abstractmethod
    def start(self) -> None:
        """Begin to get records."""

    @abstractmethod
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

    @abstractmethod
    def commit(self, commit: Commit) -> None:
        """Start a commit, not during a poll, since the client has other callers wait."""

    @abstractmethod
    def rewind(self, place: TopicPartition, offset: int) -> None:
        """Have a partition, which is to be paused, continue at an offset when it is fetched again."""

    @abstractmethod
    async def close(self, limit_s: float, on_revoke: OnRevoke) -> None:
        """Give everything up, within a limit, s; ``on_revoke`` is called for what is still assigned."""
