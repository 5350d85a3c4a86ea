"""``--once``: whether the records that were in the topics at the start are processed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka.admin import AdminClient

from processor.intake.assigned_log import AssignedLog
from wait_registry.clock import Clock
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import GroupProtocol
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)

# The longest session that brokers grant by default: a member that is still there after so long sends heartbeats.
ALIVE_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class Share:
    """The group's assignment: ``ours`` is this member's; ``left`` are unfinished partitions of other members.

    ``settled`` is whether every other partition is finished or assigned to a live member.
    """

    settled: bool
    ours: frozenset[TopicPartition] = frozenset()
    left: tuple[tuple[TopicPartition, str], ...] = ()


@dataclass(eq=False)
class StopAtEnds:
    """Decides when a processor with ``--once`` is finished.

    A process with some partitions, or none, may have lost the others a moment ago, or may be between two generations of
    its group. So the coordinator is asked for the assignment. The classic protocols settle when all members have
    answered, so every member counts as alive, and a process with all partitions need not ask. Under KIP-848 a member
    that died keeps its partitions until the end of its session: it counts as alive after the longest session.

    Args:
        settings: group, protocol and cluster.
        ends: how far each consumed partition went at the start.
        clock: measures how long a member has been seen.

    Attributes:
        asks: everything assigned has been read, and the coordinator must say whether that is enough.
    """

    settings: Settings
    ends: Mapping[TopicPartition, int]
    clock: Clock

    def __post_init__(self) -> None:
        self._seen_s: dict[str, float] = {}
        self._classic = self.settings.processor.group_protocol is GroupProtocol.CLASSIC
        self._logged: Share | None = None
        self.share = Share(settled=False)
        self.asks = False

    def reached(self, assigned: Mapping[TopicPartition, AssignedLog]) -> bool:
        """Return whether all assigned partitions are consumed to their ends, and live members have the others."""
        consumed = reached(self.ends, assigned.values())
        complete = self._classic and self.ends.keys() <= assigned.keys()
        self.asks = consumed and not complete
        return consumed and (complete or (self.share.settled and self.share.ours <= assigned.keys()))

    def compare(self, admin: AdminClient, group: GroupDescription, own: str) -> None:
        """Update the group's assignment; called in the broker watch's thread.

        Args:
            admin: client for log ends and commits.
            group: the coordinator's description.
            own: this consumer's member id.

        Raises:
            WaitRegistryError: the broker doesn't answer, or refuses the request.
        """
        holders = {place: member for member, places in group.held.items() for place in places}
        now_s = self.clock.monotonic()
        self._seen_s = {member: self._seen_s.get(member, now_s) for member in group.held}
        if not group.stable:
            self.share = Share(settled=False)
            return
        alive_after_s = 0.0 if self._classic else ALIVE_AFTER_S
        alive = {member for member, since_s in self._seen_s.items() if now_s - since_s >= alive_after_s}
        self.share = share_of(self._unfinished(admin, holders, own), holders, own, alive)
        self._log(self.share)

    def _unfinished(self, admin: AdminClient, holders: Mapping[TopicPartition, str], own: str) -> list[TopicPartition]:
        """Return the partitions of others that aren't committed to their ends."""
        others = [place for place in self.ends if holders.get(place) != own]
        if not others:
            return []
        found = committed_offsets(self.settings.kafka, self.settings.processor.group, others)
        committed = {(place.topic, place.partition): place.offset for place in found}
        behind = [place for place in others if committed.get(place, -1) < self.ends[place]]
        return [place for place in behind if _first(admin, place) < self.ends[place]]

    def _log(self, share: Share) -> None:
        if not share.left or share == self._logged:
            return
        self._logged = share
        held = ", ".join(f"{topic}[{number}] by {member}" for (topic, number), member in share.left)
        if share.settled:
            log.warning("not processed here, but by live members of the group: %s", held)
        else:
            log.info("waiting until other members finish or lose their partitions: %s", held)


def share_of(
    unfinished: Iterable[TopicPartition], holders: Mapping[TopicPartition, str], own: str, alive: set[str]
) -> Share:
    """Compute the group's assignment.

    Args:
        unfinished: partitions that aren't assigned here and aren't committed to their ends.
        holders: member IDs by partition.
        own: this consumer's member ID.
        alive: members that are certainly alive.
    """
    left = tuple((place, holders.get(place, "no member")) for place in unfinished)
    ours = frozenset(place for place, member in holders.items() if member == own)
    return Share(all(member in alive for _, member in left), ours, left)


def ends_now(admin: AdminClient, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the end offset of every partition of the consumed topics."""
    ends: dict[TopicPartition, int] = {}
    for topic in topics:
        partitions = range(describe_topic(admin, topic).partitions)
        ends |= {(topic, partition): end for partition, end in end_offsets(admin, topic, partitions).items()}
    return ends


def reached(ends: Mapping[TopicPartition, int], assigned: Iterable[AssignedLog]) -> bool:
    """Return whether all assigned partitions have been consumed to those ends (transaction markers count as read)."""
    return all(owner.position >= ends.get((owner.topic, owner.partition), 0) for owner in assigned)


def _first(admin: AdminClient, place: TopicPartition) -> int:
    topic, partition = place
    return earliest_offsets(admin, topic, [partition])[partition]
