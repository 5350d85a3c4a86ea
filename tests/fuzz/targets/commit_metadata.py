"""The metadata of offset commits: whoever may commit for a group may write any text there."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz.target import Target
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata, decode_metadata


def _read(data: bytes) -> CommitMetadata | None:
    return decode_metadata(data.decode("utf-8", "replace"))


def _check(data: bytes) -> None:
    metadata = _read(data)
    if metadata is None:
        return
    again = decode_metadata(metadata.encode())
    assert again is not None and again.wait_topic == metadata.wait_topic, "another topic"
    assert again.input_topic_id == metadata.input_topic_id, "another input topic"


def _seeds() -> Iterator[bytes]:
    topic = TopicIdentity("waitreg.wait", "abcdefghijklmnopqrstuv", 8)
    yield CommitMetadata(topic).encode().encode()
    yield CommitMetadata(topic, "abcdefghijklmnopqrstuv").encode().encode()
    yield b"waitreg1;wait;id;8;ttl_s=1e400;skew_allowance_s=nan;later=1"


TARGET = Target(
    "commit_metadata",
    _read,
    _check,
    _seeds,
    (
        b"waitreg1;",
        b";input_topic_id=",
        "\u0663".encode(),
    ),
    share=0.3,
)
