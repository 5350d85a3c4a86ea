"""``--once``: how far the records go that were there at the start, and whether the group has them all."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka.admin import AdminClient

from processor.assigned_partition import AssignedPartition
from wait_registry.clock import Clock
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import GroupProtocol
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)

# The longest session that brokers grant by default: a member that is still there after so long sends heartbeats.
ALIVE_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class Share:
    """Who has what, by the broker: ``ours`` is this member's; ``left`` is unfinished and somebody else's, by member.

    ``settled`` when every partition that isn't ours is finished, or held by a member that is alive.
    """

    settled: bool
    ours: frozenset[TopicPartition] = frozenset()
    left: tuple[tuple[TopicPartition, str], ...] = ()


class Once:
    """Decides when a processor that is to work off what is there has done so.

    Who has some partitions, or none, may have lost the others a moment ago, or be between two generations of a group
    that moves them: the broker is asked who holds what. The classic protocols settle when all members have answered, so
    all of them count as alive, and who has everything need not ask. Under KIP-848 a member that died keeps its
    partitions until its session is over: it counts as alive when it has outlasted any session.

    Args:
        settings: group, protocol and cluster.
        ends: how far each consumed partition went at the start.
        clock: measures how long a member has been seen.

    Attributes:
        asks: all that is assigned has been read, and whether that is enough the group must tell.
    """

    def __init__(self, settings: Settings, ends: Mapping[TopicPartition, int], clock: Clock) -> None:
        self._kafka = settings.kafka
        self._group = settings.processor.group
        self._ends = dict(ends)
        self._monotonic = clock.monotonic
        self._seen_s: dict[str, float] = {}
        self._classic = settings.processor.group_protocol is GroupProtocol.CLASSIC
        self._told: Share | None = None
        self.share = Share(settled=False)
        self.asks = False

    def reached(self, assigned: Mapping[TopicPartition, AssignedPartition]) -> bool:
        """Return whether all that is ours has been consumed to its end, and the rest is in good hands."""
        consumed = reached(self._ends, assigned.values())
        complete = self._classic and self._ends.keys() <= assigned.keys()
        self.asks = consumed and not complete
        return consumed and (complete or (self.share.settled and self.share.ours <= assigned.keys()))

    def judge(self, admin: AdminClient, group: GroupDescription, own: str) -> None:
        """Judge who has what; in the watch's thread.

        Args:
            admin: asked for logs and commits.
            group: as its coordinator describes it.
            own: this consumer's member id.

        Raises:
            WaitRegistryError: the broker doesn't answer, or refuses us.
        """
        holders = {place: member for member, places in group.held.items() for place in places}
        now_s = self._monotonic()
        self._seen_s = {member: self._seen_s.get(member, now_s) for member in group.held}
        if not group.stable:
            self.share = Share(settled=False)
            return
        alive_after_s = 0.0 if self._classic else ALIVE_AFTER_S
        alive = {member for member, since_s in self._seen_s.items() if now_s - since_s >= alive_after_s}
        self.share = share_of(self._unfinished(admin, holders, own), holders, own, alive)
        self._tell(self.share)

    def _unfinished(self, admin: AdminClient, holders: Mapping[TopicPartition, str], own: str) -> list[TopicPartition]:
        """Return what isn't ours and not committed to its end."""
        others = [place for place in self._ends if holders.get(place) != own]
        if not others:
            return []
        found = committed_offsets(self._kafka, self._group, others)
        committed = {(place.topic, place.partition): place.offset for place in found}
        behind = [place for place in others if committed.get(place, -1) < self._ends[place]]
        return [place for place in behind if _first(admin, place) < self._ends[place]]

    def _tell(self, share: Share) -> None:
        if not share.left or share == self._told:
            return
        self._told = share
        held = ", ".join(f"{topic}[{number}] by {member}" for (topic, number), member in share.left)
        if share.settled:
            log.warning("not worked off here, but left to members of the group that are alive: %s", held)
        else:
            log.info("waiting until other members finish, or lose, what they hold: %s", held)


def share_of(
    unfinished: Iterable[TopicPartition], holders: Mapping[TopicPartition, str], own: str, alive: set[str]
) -> Share:
    """Judge who has what.

    Args:
        unfinished: partitions of others, or of nobody, that aren't committed to their ends.
        holders: the member that has a partition.
        own: our member id.
        alive: members that are certainly alive.
    """
    left = tuple((place, holders.get(place, "nobody yet")) for place in unfinished)
    ours = frozenset(place for place, member in holders.items() if member == own)
    return Share(all(member in alive for _, member in left), ours, left)


def ends_now(admin: AdminClient, topics: Iterable[str]) -> dict[TopicPartition, int]:
    """Return the end offset of every partition of the consumed topics."""
    ends: dict[TopicPartition, int] = {}
    for topic in topics:
        partitions = range(describe_topic(admin, topic).partitions)
        ends |= {(topic, partition): end for partition, end in end_offsets(admin, topic, partitions).items()}
    return ends


def reached(ends: Mapping[TopicPartition, int], assigned: Iterable[AssignedPartition]) -> bool:
    """Return whether all assigned partitions have been consumed to those ends (transaction markers count as read)."""
    return all(max(owner.position, owner.end_seen) >= ends.get((owner.topic, owner.partition), 0) for owner in assigned)


def _first(admin: AdminClient, place: TopicPartition) -> int:
    topic, partition = place
    return earliest_offsets(admin, topic, [partition])[partition]
