"""Whether this process has its place in the group, and the partitions that the group has given it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from wait_registry.errors import TransientError
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import GroupProtocol, ProcessorSettings

log = logging.getLogger(__name__)


class Membership:
    """Shared by the consumer, which knows what is assigned here, and the watch, which asks the coordinator.

    The classic protocols tell a member everything. Under KIP-848 a member that gets no partitions is told nothing, so
    that surplus processes would never become ready; and librdkafka (2.16) misses a new assignment whose heartbeat is
    answered after the next one was due, and never asks for it again. The coordinator waits, for minutes or for ever,
    with partitions that are nobody's: it is asked, and a member that has missed something joins anew.

    Args:
        settings: group and protocol.
    """

    def __init__(self, settings: ProcessorSettings) -> None:
        self.must_ask = settings.group_protocol is GroupProtocol.CONSUMER
        self.joined = False
        self.member_id = ""
        self._was_lost = False
        self._assigned: Collection[TopicPartition] = ()
        self._rejoin: Callable[[], None] = _nothing
        self._differing: frozenset[TopicPartition] = frozenset()
        self._unknown = False

    def begin(self, member_id: str, assigned: Collection[TopicPartition], rejoin: Callable[[], None]) -> None:
        """Take over what the consumer knows when it subscribes.

        Args:
            member_id: its own; only KIP-848's is known now.
            assigned: what is assigned here, kept up to date by the consumer.
            rejoin: leaves the group and joins it again.
        """
        self.member_id = member_id
        self._assigned = assigned
        self._rejoin = rejoin

    def assigned(self, member_id: str) -> None:
        """Take note of an assignment, be it of no partitions.

        Args:
            member_id: under KIP-848 the consumer's for all its life, else this assignment's.
        """
        self.joined = True
        self.member_id = member_id or self.member_id
        self._unknown = False

    def lost(self) -> None:
        """Take note that all partitions are gone until the next assignment, which the client asks for by itself."""
        self.joined = False
        self._was_lost = True
        self._unknown = False

    def forget_looks(self) -> None:
        """Have `compare` begin anew: two looks with an outage between them aren't two in a row."""
        self._unknown = False
        self._differing = frozenset()

    def described(self, group: GroupDescription) -> None:
        """Learn from the coordinator whether a member without partitions is to have none."""
        if group.stable and group.held.get(self.member_id) == frozenset():
            self.joined = True

    def compare(self, group: GroupDescription) -> None:
        """Join anew when some partitions were at two looks in a row not where the coordinator wants them.

        Raises:
            TransientError: at two looks in a row the coordinator didn't know this member, and nobody has told it.
        """
        unknown = (self.joined or self._was_lost) and self.member_id not in group.held
        if unknown and self._unknown:
            raise TransientError(
                f"this member ({self.member_id}) isn't in its group any more, and its client doesn't join it again: "
                "start again"
            )
        self._unknown = unknown
        differing = group.differing(self.member_id, frozenset(self._assigned))
        lasting = differing & self._differing
        self._differing = differing - lasting
        if lasting:
            log.warning(
                "joining the group anew, as this member has missed a new assignment: %s",
                "; ".join(_said(place, place in self._assigned) for place in sorted(lasting)),
            )
            self._rejoin()


def _said(place: TopicPartition, is_assigned: bool) -> str:
    topic, number = place
    return f"{topic}[{number}] is {'to be given up' if is_assigned else 'to be taken'}"


def _nothing() -> None:
    """Stand for a consumer that hasn't subscribed yet."""
