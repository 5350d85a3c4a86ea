"""The metadata of offset commits: whoever may commit for a group may write any text there."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tests.fuzz.target import Target
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata, decode_metadata
from wait_registry.kafka.time_rules import TimeRules, differences

OWN = TimeRules(600.0, 5.0)


def _read(data: bytes) -> CommitMetadata | None:
    return decode_metadata(data.decode("utf-8", "replace"))


def _check(data: bytes) -> None:
    metadata = _read(data)
    if metadata is None:
        return
    again = decode_metadata(metadata.encode())
    assert again is not None and again.wait_topic == metadata.wait_topic, "another topic"
    assert again.input_topic_id == metadata.input_topic_id, "another input topic"
    if metadata.rules is not None:
        for rule in (metadata.rules.ttl_s, metadata.rules.skew_allowance_s):
            assert math.isfinite(rule) and rule >= 0, f"no time: {rule}"
        assert all(str(one) for one in differences("billing", [metadata.rules], OWN)), "a difference without words"


def _seeds() -> Iterator[bytes]:
    topic = TopicIdentity("waitreg.wait", "abcdefghijklmnopqrstuv", 8)
    yield CommitMetadata(topic).encode().encode()
    yield CommitMetadata(topic, OWN).encode().encode()
    yield CommitMetadata(topic, OWN, "abcdefghijklmnopqrstuv").encode().encode()
    yield b"waitreg1;wait;id;8;ttl_s=1e400;skew_allowance_s=nan;later=1"


TARGET = Target(
    "commit_metadata",
    _read,
    _check,
    _seeds,
    (
        b"waitreg1;",
        b";ttl_s=",
        b";skew_allowance_s=",
        b";input_topic_id=",
        b"nan",
        b"inf",
        b"-1",
        b"1e400",
        "\u0663".encode(),
    ),
    share=0.3,
)
