"""Committed offsets that aren't in their logs: retention was faster than the group, or a log has lost its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final

from wait_registry.records.topics import TopicPartition

# Rewinds these partitions alone, all of them.
REWIND: Final = "waitreg rewind --to-earliest --only-outside-log"


def outside_log(
    offsets: Mapping[TopicPartition, int], firsts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> list[TopicPartition]:
    """Return the partitions whose offset isn't in the log, sorted.

    Args:
        offsets: where the group continues, by partition.
        firsts: the first offset in the log, as far as it is known.
        ends: the high watermark, as far as it is known.
    """
    return sorted(
        place for place, offset in offsets.items() if not firsts.get(place, offset) <= offset <= ends.get(place, offset)
    )


def partitions_text(places: Iterable[TopicPartition]) -> str:
    """Return partitions by topic, runs of them as a range: ``odd[3], orders[0-2, 5]``."""
    by_topic = groupby(sorted(places), key=lambda place: place[0])
    return ", ".join(f"{topic}[{', '.join(_runs([number for _, number in found]))}]" for topic, found in by_topic)


def _runs(numbers: list[int]) -> Iterable[str]:
    # Within a run, number and index grow alike.
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        yield str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}"
