"""Where records stand that the broker has acknowledged without saying where."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from wait_registry.demo.committed_records import read_committed, read_headers
from wait_registry.demo.fingerprint import Fingerprint, fingerprint
from wait_registry.demo.manifest import Coordinates, Published
from wait_registry.errors import TransientError
from wait_registry.settings.root import Settings

Unplaced = tuple[int, Fingerprint]
"""Partition and content of a record whose offset is unknown."""


def places_of(
    settings: Settings, topic: str, unplaced: Iterable[Unplaced], listed: Collection[Coordinates]
) -> Sequence[Published]:
    """Find records by what they hold, reading their topic from its beginning.

    An idempotent producer whose batch was written, and whose answer was lost, sends it again; the broker then
    acknowledges a duplicate without its offset. That is rare, so it may take long.

    Args:
        settings: name the cluster.
        topic: theirs.
        unplaced: their partitions and contents.
        listed: places that are known to be others'. Of equal records that aren't listed the last ones are taken.

    Raises:
        TransientError: they can't be read, or one of them isn't there.
    """
    wanted = Counter(unplaced)
    found: dict[Unplaced, list[Published]] = defaultdict(list)
    for message in read_committed(settings, topic):
        partition, offset, headers = message.partition(), message.offset(), read_headers(message)
        assert partition is not None and offset is not None
        if (topic, partition, offset) in listed or headers is None:
            continue
        content = fingerprint(message.key(), message.value(), headers)
        if (partition, content) in wanted:
            found[partition, content].append(Published(topic, partition, offset, message.timestamp()[1], content))
    placed = [one for content, count in wanted.items() for one in found[content][-count:]]
    if len(placed) < wanted.total():
        raise TransientError(
            f"{wanted.total() - len(placed)} records were acknowledged without a place, and {topic} doesn't show them: "
            "the manifest lacks them. Start again with another topic and another manifest"
        )
    return placed
