"""What stands in the metadata of a processor's offset commits: the topics they rely on, and the rules about time.

The processor has no database of its own, and an offset is only worth something together with the wait topic in which
the records below it are registered, and with the very log it was made in. See docs/decisions/0001 and 0007.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.time_rules import TimeRules
from wait_registry.settings.kafka import KafkaSettings

PREFIX = "waitreg1"
SEPARATOR = ";"
IDENTITY_PARTS = 4
_PARTITIONS = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """The wait topic that a commit relies on; the others are None where an older processor committed.

    ``input_topic_id`` is the id that the consumed topic itself had.
    """

    wait_topic: TopicIdentity
    rules: TimeRules | None = None
    input_topic_id: str | None = None

    def encode(self) -> str:
        """Return ``waitreg1;{wait topic};{topic id};{partition count}``, and what else is known as ``;{name}={value}``.

        The names are ``ttl_s``, ``skew_allowance_s`` (s) and ``input_topic_id``.
        """
        topic = self.wait_topic
        parts = [PREFIX, topic.topic, topic.topic_id, str(topic.partitions)]
        if self.rules is not None:
            parts += [f"ttl_s={self.rules.ttl_s:.15g}", f"skew_allowance_s={self.rules.skew_allowance_s:.15g}"]
        if self.input_topic_id is not None:
            parts.append(f"input_topic_id={self.input_topic_id}")
        return SEPARATOR.join(parts)


def decode_metadata(text: str | None) -> CommitMetadata | None:
    """Read a metadata string; None when there is none, or another program wrote it.

    Parts behind the wait topic are ``name=value``; unknown ones are passed over, so that a later version may add some.
    """
    parts = (text or "").split(SEPARATOR)
    if len(parts) < IDENTITY_PARTS or parts[0] != PREFIX or not _PARTITIONS.fullmatch(parts[3]):
        return None
    named = dict(part.partition("=")[::2] for part in parts[IDENTITY_PARTS:])
    wait_topic = TopicIdentity(parts[1], parts[2], int(parts[3]))
    return CommitMetadata(wait_topic, _rules(named), named.get("input_topic_id") or None)


def committed_rules(
    kafka: KafkaSettings, group: str, partitions: Iterable[tuple[str, int]], timeout_s: float | None = None
) -> frozenset[TimeRules]:
    """Read under which rules a group's offsets were committed; those of older processors and other programs tell none.

    Args:
        kafka: the cluster.
        group: whose offsets.
        partitions: topic and number of those to look at.
        timeout_s: how long to wait, s; by default ``kafka.request_timeout_s``.

    Raises:
        ConfigurationError: we may not see the group (DESCRIBE) or a topic.
        TransientError: the cluster can't be reached now; retry.
    """
    found = committed_offsets(kafka, group, partitions, timeout_s)
    read = (decode_metadata(place.metadata) for place in found if place.offset >= 0)
    return frozenset(one.rules for one in read if one is not None and one.rules is not None)


def _rules(named: dict[str, str]) -> TimeRules | None:
    try:
        ttl_s, skew_allowance_s = float(named["ttl_s"]), float(named["skew_allowance_s"])
    except (KeyError, ValueError):
        return None
    # Whoever may commit for the group may write anything, and "nan" is a number to float().
    if not (math.isfinite(ttl_s) and math.isfinite(skew_allowance_s)) or min(ttl_s, skew_allowance_s) < 0:
        return None
    return TimeRules(ttl_s, skew_allowance_s)
