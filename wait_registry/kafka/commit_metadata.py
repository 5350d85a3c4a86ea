"""The metadata of a processor's offset commits: which topics the offsets rely on.

The processor has no database. An offset is only valid together with the wait topic in which the records below it are
registered, and with the input topic that it was read from. See docs/decisions/0001.

The metadata names its offset. A program that reads offsets, changes them and commits them keeps the metadata of the
former ones, which says nothing about the new ones. See docs/decisions/0044.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from wait_registry.kafka.cluster import TopicIdentity

PREFIX = "waitreg1"
SEPARATOR = ";"
IDENTITY_PARTS = 4
# The largest number that a reader takes; it reads a larger one as unknown.
MAX_RECORDED = 999_999_999
_NUMBER, _OFFSET = re.compile(r"[0-9]{1,9}"), re.compile(r"[0-9]{1,19}")
_NAMED = ("input_topic_id", "registration", "uncommitted_max", "kept_below", "redeliver_to")


@dataclass(frozen=True, slots=True)
class CommitMetadata:
    """The wait topic that a commit relies on, and what else the commit has.

    That is the ID of the consumed topic, the registration mode of the process, and how many records at most it had
    polled that no confirmed commit covered. ``kept_below`` is the offset that another program committed in a retry or
    redelivery topic while the log had records before it: the group hasn't handled those, so it doesn't delete them.
    ``redeliver_to`` is `origin` if the process takes a record of an input topic for the delivery that its lineage says.
    """

    wait_topic: TopicIdentity
    input_topic_id: str | None = None
    registration: str | None = None
    uncommitted_max: int | None = None
    kept_below: int | None = None
    redeliver_to: str | None = None

    def with_recorded(self, uncommitted_max: int | None, registration: str | None) -> CommitMetadata:
        """Return the same with the bound of uncommitted records and the registration mode; None is unknown."""
        return replace(self, uncommitted_max=uncommitted_max, registration=registration)

    def encode(self, offset: int) -> str:
        """Return the metadata of a commit of this offset.

        It is ``waitreg1;{wait topic};{topic ID};{partition count};offset={offset}``, then ``;name=value`` for what else
        it has.
        """
        topic = self.wait_topic
        parts = [PREFIX, topic.topic, topic.topic_id, str(topic.partitions), f"offset={offset}"]
        for name in _NAMED:
            if (value := getattr(self, name)) is not None:
                parts.append(f"{name}={value}")
        return SEPARATOR.join(parts)


def decode_metadata(text: str | None, offset: int) -> CommitMetadata | None:
    """Read the metadata of a committed offset; None if it is empty, of another offset, or no processor's.

    The parts after the wait topic are ``name=value``; unknown names are ignored, so a later version can add some.
    """
    parts = (text or "").split(SEPARATOR)
    if len(parts) < IDENTITY_PARTS or parts[0] != PREFIX or not _NUMBER.fullmatch(parts[3]):
        return None
    named = dict(part.partition("=")[::2] for part in parts[IDENTITY_PARTS:])
    if named.get("offset") != str(offset):
        return None
    wait_topic = TopicIdentity(parts[1], parts[2], int(parts[3]))
    bound, kept = named.get("uncommitted_max", ""), named.get("kept_below", "")
    return CommitMetadata(
        wait_topic,
        named.get("input_topic_id") or None,
        named.get("registration") or None,
        int(bound) if _NUMBER.fullmatch(bound) else None,
        int(kept) if _OFFSET.fullmatch(kept) else None,
        named.get("redeliver_to") or None,
    )
