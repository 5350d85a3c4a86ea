"""What people and other programs do to the offsets and the log of a partition while no process has it."""

from __future__ import annotations

from random import Random

from tests.simulation.world import RETRIES, Committed, World
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata, decode_metadata
from wait_registry.records.topics import TopicPartition
from waitreg.rewind.plan import Position, plan

WAIT_TOPIC, TOPIC_ID = TopicIdentity("w", "w", 1), "t"


def metadata_of(committed: Committed) -> CommitMetadata | None:
    """Return the metadata of a commit; None if another program made it."""
    if not committed.is_own:
        return None
    written = CommitMetadata(WAIT_TOPIC, TOPIC_ID, committed.mode, committed.bound, committed.kept_below)
    text = written.encode(committed.offset if committed.named is None else committed.named)
    return decode_metadata(text, committed.offset)


class Operators:
    """Act on a partition, by a random number generator of their own.

    Args:
        world: on which they act.
        random: decides what they do.
        keeps: decides whether a program that commits an offset keeps the metadata of the one before.
    """

    def __init__(self, world: World, random: Random, keeps: Random) -> None:
        self._world = world
        self._random = random
        self._keeps = keeps

    def act(self, place: TopicPartition) -> str:
        """Do one thing, and return what it was."""
        first, end = self._world.first.get(place, 0), self._world.end(place)
        target = self._random.randint(first, end)
        if place != RETRIES:
            return self._random.choice([self._rewind, self._reset])(place, target)
        return self._random.choice([self._reset, self._delete, self._to_the_beginning])(place, target)

    def _to_the_beginning(self, place: TopicPartition, _: int) -> str:
        return self._rewind(place, self._world.first.get(place, 0))

    def _rewind(self, place: TopicPartition, target: int) -> str:
        """`waitreg rewind`."""
        world, before = self._world, self._world.committed.get(place)
        recorded = None if before is None else metadata_of(before)
        position = Position(
            world.first.get(place, 0),
            world.end(place),
            None if before is None else before.offset,
            recorded or CommitMetadata(WAIT_TOPIC, TOPIC_ID),
        )
        said = plan(place, position, target).metadata
        self._move(place, Committed(target, said.uncommitted_max, said.registration))
        return f"rewind {place} to {target}"

    def _reset(self, place: TopicPartition, target: int) -> str:
        """`kafka-consumer-groups --reset-offsets`, or a program that commits the offsets that it was given, changed."""
        # Without metadata, `off` has no warm-up.
        again = {(*place, offset) for offset, _ in self._world.log(place) if offset >= target}
        self._world.may_be_left |= again
        self._world.registered_late |= again
        before, committed = self._world.committed.get(place), Committed(target, None, None, is_own=False)
        if before is not None and before.is_own and self._keeps.random() < 0.5:
            named = before.offset if before.named is None else before.named
            committed = before._replace(offset=target, named=named)
        self._move(place, committed)
        if committed.named == target:
            # To the byte what the group itself committed here, which had registered or settled each record before.
            world = self._world
            own = {record for record in world.skipped if record[:2] == place and world.registrations(record)}
            world.skipped -= own
            world.may_expire |= own
        return f"reset {place} to {target}, with metadata of {committed.named}"

    def _delete(self, place: TopicPartition, before: int) -> str:
        """`kafka-delete-records`."""
        self._pass_over(place, before)
        self._world.first[place] = before
        return f"delete {place} before {before}"

    def _move(self, place: TopicPartition, committed: Committed) -> None:
        self._pass_over(place, committed.offset)
        self._world.skipped.difference_update(
            (*place, offset) for offset, _ in self._world.log(place) if offset >= committed.offset
        )
        self._world.committed[place] = committed
        self._world.moved.add(place)

    def _pass_over(self, place: TopicPartition, before: int) -> None:
        """Note what the group won't handle: what is registered of it expires."""
        world = self._world
        passed = {(*place, offset) for offset, _ in world.log(place) if world.start(place) <= offset < before}
        world.may_be_left |= passed
        world.skipped |= (unsettled := {record for record in passed if not world.settled(record)})
        world.ever_skipped |= unsettled
