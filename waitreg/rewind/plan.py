"""What moving a group's offsets does: pure decisions about each partition.

The metadata of the new commit is the part that matters for the guarantees. After an assignment, a processor registers
the records at once that an earlier owner may have registered (the warm-up): it takes the first records after the
committed offset, as many as the metadata says. So the metadata must cover every registration at or after the new
offset. See docs/decisions/0026.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from wait_registry.errors import ConfigurationError
from wait_registry.kafka.commit_metadata import MAX_RECORDED, CommitMetadata
from wait_registry.records.topics import TopicPartition
from wait_registry.records.wait_record import RegistrationMode

# What the metadata says where records may be registered although the group's commits don't say so: in every mode, the
# next owner then has a warm-up.
MAY_BE_REGISTERED: Final = RegistrationMode.DEFERRED.value


@dataclass(frozen=True, slots=True)
class Position:
    """A partition before the move.

    Args:
        first: the first offset that is in the log.
        end: the last stable offset.
        committed: the group's offset; None if it has none, or one of a deleted topic of this name.
        metadata: of that commit; without one, only the topics as they are now.
    """

    first: int
    end: int
    committed: int | None
    metadata: CommitMetadata

    @property
    def start(self) -> int:
        """Where the group would continue."""
        return self.first if self.committed is None else self.committed


@dataclass(frozen=True, slots=True)
class Move:
    """The move of one partition; counts are offsets, of which a log may have more than records.

    Args:
        place: topic and partition.
        committed: the offset before, None if there is none.
        target: the offset to commit.
        again: how many records at most the group handles again.
        skipped: the range of records in the log that the group skips; empty unless the move is forward.
        deleted: how many skipped offsets are no longer in the log.
        metadata: of the new commit.
    """

    place: TopicPartition
    committed: int | None
    target: int
    again: int
    skipped: range
    deleted: int
    metadata: CommitMetadata

    @property
    def changes(self) -> bool:
        """Whether there is anything to commit."""
        return self.target != self.committed


def plan(place: TopicPartition, position: Position, target: int) -> Move:
    """Decide what the move of one partition does.

    Raises:
        ConfigurationError: the log doesn't have the target.
    """
    if not position.first <= target <= position.end:
        raise ConfigurationError(
            f"offset {target} isn't in {place[0]}[{place[1]}], whose log begins at {position.first} and ends at "
            f"{position.end}: choose an offset in between, --to-earliest or --to-latest"
        )
    start = position.start
    skipped = range(min(max(start, position.first), target), target)
    return Move(
        place,
        position.committed,
        target,
        max(0, min(start, position.end) - target),
        skipped,
        max(0, target - start) - len(skipped),
        _metadata(position, target),
    )


def plan_all(positions: Mapping[TopicPartition, Position], targets: Mapping[TopicPartition, int]) -> list[Move]:
    """Decide for all partitions, in order; raises as `plan`."""
    return [plan(place, positions[place], target) for place, target in sorted(targets.items())]


def _metadata(position: Position, target: int) -> CommitMetadata:
    committed, recorded = position.committed, position.metadata
    bound = recorded.uncommitted_max
    if committed is None:
        bound = None
    elif bound is not None:
        # Registered are at most `bound` records from the committed offset on, and any of those that come in again.
        bound += max(0, committed - target)
    return replace(
        recorded,
        uncommitted_max=bound if bound is None or bound <= MAX_RECORDED else None,
        registration=_mode(position, target),
    )


def _mode(position: Position, target: int) -> str | None:
    """Return the mode to record: `off` and an unknown one mean no warm-up to a processor in `off`."""
    mode = position.metadata.registration
    if mode not in (None, RegistrationMode.OFF):
        return mode
    if mode is not None and position.committed is not None and target >= position.committed:
        return mode
    # The records that come in again may be from before a change to `off`.
    return MAY_BE_REGISTERED
