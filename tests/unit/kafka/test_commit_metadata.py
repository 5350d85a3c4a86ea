"""What a commit's metadata says about the topics it relies on and the rules about time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata, decode_metadata
from wait_registry.kafka.time_rules import TimeRules

NAMES = st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True)
IDS = st.from_regex(r"[a-zA-Z0-9_-]{22}", fullmatch=True)
SECONDS = st.floats(0, 1e7).map(lambda number: round(number, 3))
WAIT_TOPIC = TopicIdentity("waitreg.wait", "h-_4", 8)
LONG = "waitreg1;waitreg.wait;h-_4;8;ttl_s=900;skew_allowance_s=5"


@given(NAMES, IDS, st.integers(1, 10_000), SECONDS, SECONDS, st.none() | IDS)
def test_it_is_read_back_as_it_was_written(
    topic: str, topic_id: str, partitions: int, ttl_s: float, skew_s: float, input_topic_id: str | None
) -> None:
    written = CommitMetadata(TopicIdentity(topic, topic_id, partitions), TimeRules(ttl_s, skew_s), input_topic_id)
    assert decode_metadata(written.encode()) == written


def test_its_form_is_the_contracts() -> None:
    assert CommitMetadata(WAIT_TOPIC, TimeRules(900, 5)).encode() == LONG
    assert CommitMetadata(WAIT_TOPIC).encode() == "waitreg1;waitreg.wait;h-_4;8"
    assert CommitMetadata(WAIT_TOPIC, TimeRules(900, 5), "x_-9").encode() == f"{LONG};input_topic_id=x_-9"


def test_the_forms_of_older_processors_stay_readable() -> None:
    assert decode_metadata("waitreg1;waitreg.wait;h-_4;8") == CommitMetadata(WAIT_TOPIC)
    assert decode_metadata(LONG) == CommitMetadata(WAIT_TOPIC, TimeRules(900, 5))


def test_what_a_later_version_adds_is_passed_over() -> None:
    rules = TimeRules(900, 5)
    assert decode_metadata(f"{LONG};margin_s=3;a flag") == CommitMetadata(WAIT_TOPIC, rules)


@pytest.mark.parametrize(
    "odd",
    [
        *("ttl_s=soon;skew_allowance_s=5", "ttl_s=900", "", "skew_allowance_s"),
        *("ttl_s=nan;skew_allowance_s=5", "ttl_s=900;skew_allowance_s=1e999", "ttl_s=900;skew_allowance_s=-1"),
    ],
)
def test_rules_that_cannot_be_read_hide_no_wait_topic(odd: str) -> None:
    assert decode_metadata(f"waitreg1;waitreg.wait;h-_4;8;{odd}") == CommitMetadata(WAIT_TOPIC)


@pytest.mark.parametrize(
    "foreign", [None, "", "note", "waitreg1;a;b", "waitreg2;a;b;3", "waitreg1;a;b;many", "waitreg1;a;b;" + 5000 * "9"]
)
def test_another_programs_metadata_says_nothing(foreign: str | None) -> None:
    assert decode_metadata(foreign) is None
