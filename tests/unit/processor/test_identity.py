"""What a commit's metadata says about the wait topic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.identity import decode_identity, encode_identity
from wait_registry.kafka.cluster import TopicIdentity

NAMES = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)


@given(NAMES, st.from_regex(r"[a-zA-Z0-9_-]{22}", fullmatch=True), st.integers(1, 10_000))
def test_it_is_read_back_as_it_was_written(topic: str, topic_id: str, partitions: int) -> None:
    identity = TopicIdentity(topic, topic_id, partitions)
    assert decode_identity(encode_identity(identity)) == identity


def test_its_form_is_the_contracts() -> None:
    assert encode_identity(TopicIdentity("waitreg.wait", "h-_4", 8)) == "waitreg1;waitreg.wait;h-_4;8"


@pytest.mark.parametrize("foreign", [None, "", "note", "waitreg1;a;b", "waitreg2;a;b;3", "waitreg1;a;b;many"])
def test_another_programs_metadata_says_nothing(foreign: str | None) -> None:
    assert decode_identity(foreign) is None
