"""Ranges of offsets as people type them: ``orders:3:100-250`` is 100 to 249 of partition 3."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from wait_registry.errors import ConfigurationError
from wait_registry.records.topics import TopicPartition, is_topic_name

_RANGE = re.compile(r"([^:]+):([0-9]{1,9}):([0-9]{1,18})-([0-9]{1,18})")


def parse_ranges(texts: Iterable[str]) -> dict[TopicPartition, range]:
    """Read ranges of offsets.

    Raises:
        ConfigurationError: one can't be read or is empty, or a partition has two.
    """
    found: dict[TopicPartition, range] = {}
    for text in texts:
        match = _RANGE.fullmatch(text)
        if match is None or not is_topic_name(match[1]):
            raise ConfigurationError(f"{text!r} is no TOPIC:PARTITION:START-END, e.g. orders:3:100-250")
        place, offsets = (match[1], int(match[2])), range(int(match[3]), int(match[4]))
        if not offsets:
            raise ConfigurationError(f"range {text} is empty: END is the offset after the last record")
        if place in found:
            raise ConfigurationError(f"{place[0]}[{place[1]}] has two ranges: give one per partition and replay")
        found[place] = offsets
    return found


def ranges_text(ranges: Mapping[TopicPartition, range]) -> str:
    """Return ranges as `parse_ranges` reads them, with spaces in between."""
    return " ".join(
        f"{topic}:{partition}:{offsets.start}-{offsets.stop}" for (topic, partition), offsets in sorted(ranges.items())
    )
