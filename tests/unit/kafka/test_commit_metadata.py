"""Which topics a commit's metadata names, and which committed offsets aren't in their logs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata, decode_metadata
from wait_registry.kafka.outside_log import outside_log, partitions_text

NAMES = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)
IDS = st.from_regex(r"[a-zA-Z0-9_-]{22}", fullmatch=True)
WAIT_TOPIC = TopicIdentity("waitreg.wait", "h-_4", 8)
IDENTITY = "waitreg1;waitreg.wait;h-_4;8"
TEXT = f"{IDENTITY};offset=17"


WAIT_TOPICS = st.builds(TopicIdentity, NAMES, IDS, st.integers(1, 10_000))
MODES = st.sampled_from(["eager", "deferred", "off"])


@given(st.builds(CommitMetadata, WAIT_TOPICS, st.none() | IDS, st.none() | MODES, st.none() | st.integers(0, 999_999)))
def test_decoding_returns_what_was_encoded(written: CommitMetadata) -> None:
    assert decode_metadata(written.encode(17), 17) == written


PIECES = st.sampled_from(["waitreg1", "wait", "id", "8", "\u0663", "input_topic_id=", "ttl_s=1e400", "later=1"])


@given(st.text() | st.lists(PIECES | st.text(max_size=5)).map(";".join) | st.text(max_size=9).map(f"{TEXT};".__add__))
def test_any_text_is_metadata_that_keeps_its_topics_or_none(text: str) -> None:
    if (read := decode_metadata(text, 17)) is not None:
        again = decode_metadata(read.encode(17), 17)
        assert again is not None
        assert (again.wait_topic, again.input_topic_id) == (read.wait_topic, read.input_topic_id)


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((), TEXT),
        (("x_-9",), f"{TEXT};input_topic_id=x_-9"),
        (("x", "deferred", 20_000), f"{TEXT};input_topic_id=x;registration=deferred;uncommitted_max=20000"),
        ((None, "off"), f"{TEXT};registration=off"),
    ],
)
def test_the_text_is_the_documented_one(parts: tuple[Any, ...], text: str) -> None:
    assert CommitMetadata(WAIT_TOPIC, *parts).encode(17) == text


@pytest.mark.parametrize("unknown", ["", "ttl_s=900;skew_allowance_s=5", "margin_s=3;a flag", "uncommitted_max=many"])
def test_unknown_parts_are_ignored(unknown: str) -> None:
    assert decode_metadata(f"{TEXT};{unknown}", 17) == CommitMetadata(WAIT_TOPIC)
    assert decode_metadata(f"{TEXT};{unknown};input_topic_id=x", 17) == CommitMetadata(WAIT_TOPIC, "x")


@pytest.mark.parametrize(
    "foreign",
    [
        *(None, "", "note", "waitreg1;a;b", "waitreg2;a;b;3;offset=17", "waitreg1;a;b;many;offset=17"),
        "waitreg1;a;b;" + 5000 * "9" + ";offset=17",
        *(IDENTITY, f"{IDENTITY};offset=16", f"{IDENTITY};offset=170", f"{IDENTITY};offset="),
    ],
)
def test_metadata_of_another_program_or_of_another_offset_is_none(foreign: str | None) -> None:
    assert decode_metadata(foreign, 17) is None


@pytest.mark.parametrize(("offset", "outside"), [(4, True), (5, False), (9, False), (10, True)])
def test_an_offset_before_the_first_or_after_the_end_is_outside(offset: int, outside: bool) -> None:
    place = ("orders", 3)
    assert outside_log({place: offset}, {place: 5}, {place: 9}) == ([place] if outside else [])


def test_what_the_broker_does_not_answer_is_not_outside() -> None:
    assert outside_log({("orders", 0): 7}, {}, {}) == []


def test_partitions_are_named_by_topic_and_run() -> None:
    places = [("orders", number) for number in (5, 0, 2, 1)] + [("odd", 3)]
    assert partitions_text(places) == "odd[3], orders[0-2, 5]"
