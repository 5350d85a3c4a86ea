"""Whether this process is a member of the group and has the partitions that the group assigned to it."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from wait_registry.errors import TransientError
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import GroupProtocol, ProcessorSettings

log = logging.getLogger(__name__)


class Membership:
    """Shared by the consumer, which knows what is assigned here, and the watch, which asks the coordinator.

    Under the classic protocols a member gets every assignment. Under KIP-848 a member without partitions gets no
    message, so surplus processes would never become ready; and librdkafka (2.16) misses a new assignment whose
    heartbeat is answered after the next one was due, and never asks for it again. The coordinator then keeps partitions
    unassigned, for minutes or indefinitely. So the coordinator is asked, and a member that missed an assignment joins
    the group again.

    Args:
        settings: group and protocol.
    """

    def __init__(self, settings: ProcessorSettings) -> None:
        self.must_ask = settings.group_protocol is GroupProtocol.CONSUMER
        self.joined = False
        self.member_id = ""
        self._was_lost = False
        self._assigned: set[TopicPartition] = set()
        self._must_join_again = False
        self._differing: frozenset[TopicPartition] = frozenset()
        self._unknown = False

    def started(self, member_id: str) -> None:
        """Note the consumer's member ID when it subscribes; it is known this early under KIP-848 only."""
        self.member_id = member_id

    def assigned(self, member_id: str = "", places: Iterable[TopicPartition] = ()) -> None:
        """Note an assignment, even one without partitions.

        Args:
            member_id: under KIP-848 the consumer's for all its life, else this assignment's.
            places: the new partitions.
        """
        self.joined = True
        self.member_id = member_id or self.member_id
        self._assigned.update(places)
        self._unknown = False

    def released(self, places: Iterable[TopicPartition]) -> None:
        """Note partitions that aren't assigned here any more."""
        self._assigned.difference_update(places)

    def lost(self) -> None:
        """Note that all partitions are lost until the next assignment, for which the client asks by itself."""
        self.joined = False
        self._was_lost = True
        self._unknown = False

    def forget_looks(self) -> None:
        """Make `compare` start again: two comparisons with an outage between them don't count as consecutive."""
        self._unknown = False
        self._differing = frozenset()

    def described(self, group: GroupDescription) -> None:
        """Note whether the coordinator assigns no partitions to this member."""
        if group.stable and group.held.get(self.member_id) == frozenset():
            self.joined = True

    def missing(self, group: GroupDescription | None) -> str:
        """Return what must still happen before this process gets partitions.

        Args:
            group: the coordinator's description; None if it didn't answer.
        """
        if group is None:
            return (
                "the group's coordinator doesn't answer. Read the log lines of the Kafka client, and the broker's log"
            )
        if self.must_ask and self.member_id not in group.held:
            return (
                f"the coordinator, which knows {len(group.held)} members, doesn't know this one ({self.member_id}). "
                "Read the log lines of the Kafka client; processor.group_protocol = consumer needs Kafka 4.0 or newer "
                "(`waitreg doctor` checks it)"
            )
        if not group.held:
            return "the group has no member yet. Read the log lines of the Kafka client"
        hosts = ", ".join(sorted(set(group.hosts.values()))) or "unknown hosts"
        return (
            f"waiting for the group to assign some to its {len(group.held)} members ({hosts}). After a member was "
            "killed, the group waits for it up to session.timeout.ms (45 s by default)"
        )

    def compare(self, group: GroupDescription) -> None:
        """Join the group again if two consecutive comparisons show the same missed assignment.

        Raises:
            TransientError: in two consecutive comparisons the coordinator didn't know this member.
        """
        unknown = (self.joined or self._was_lost) and self.member_id not in group.held
        if unknown and self._unknown:
            raise TransientError(
                f"this member ({self.member_id}) is no longer in its group, and its client doesn't join again. Start "
                "the process again"
            )
        self._unknown = unknown
        differing = group.differing(self.member_id, frozenset(self._assigned))
        lasting = differing & self._differing
        self._differing = differing - lasting
        if lasting:
            missed = "; ".join(_said(place, place in self._assigned) for place in sorted(lasting))
            self.join_again(f"this member missed an assignment: {missed}")

    def join_again(self, why: str) -> None:
        """Have the consumer leave the group and join it again with its next poll; from any thread.

        Then every partition starts where its committed offset and its log say.
        """
        log.warning("joining the group again, because %s", why)
        self._must_join_again = True

    def must_join_again(self) -> bool:
        """Return, once, whether to leave the group and join it again."""
        must, self._must_join_again = self._must_join_again, False
        return must


def _said(place: TopicPartition, is_assigned: bool) -> str:
    topic, number = place
    return f"{topic}[{number}] must be {'released' if is_assigned else 'taken'}"
