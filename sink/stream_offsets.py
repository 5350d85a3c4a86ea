"""Where a micro-batch really ends: Spark writes it to the checkpoint before the batch runs.

The highest offset in the batch's data plus one falls short of it where transaction markers follow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from sink.position import TopicPartition

VERSION = "v1"


def batch_end_offsets(checkpoint: Path, batch_id: int) -> dict[TopicPartition, int]:
    """Return the end offsets of a batch of a query with one Kafka source.

    Raises ValueError when the file isn't what this Spark version writes.
    """
    return parse_offsets((checkpoint / "offsets" / str(batch_id)).read_text("utf-8"))


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Read Spark's offset log entry: a version line, a line of metadata, then a line of JSON per source."""
    lines = text.split("\n")
    if len(lines) != 3 or lines[0] != VERSION:
        raise ValueError(
            f"Spark's offset log: expected {VERSION} and one source, saw {lines[0]!r} and {len(lines)} lines"
        )
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in json.loads(lines[2]).items()
        for partition, offset in partitions.items()
    }


def starting_offsets(positions: Mapping[TopicPartition, int]) -> str:
    """Return the option startingOffsets, which must name every partition."""
    topics: dict[str, dict[str, int]] = {}
    for name, offset in sorted(positions.items()):
        topics.setdefault(name.topic, {})[str(name.partition)] = offset
    return json.dumps(topics)


def assignment(names: Iterable[TopicPartition]) -> str:
    """Return the option assign: exactly these partitions, so that none comes unasked."""
    topics: dict[str, list[int]] = {}
    for name in sorted(names):
        topics.setdefault(name.topic, []).append(name.partition)
    return json.dumps(topics)
