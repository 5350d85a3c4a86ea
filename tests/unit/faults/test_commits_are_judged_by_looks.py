"""What the fault tests judge commits by finds a commit that came too early, and one that went back."""

from __future__ import annotations

import pytest

from tests.chaos.history.history import Look
from tests.faults.processor.observation import Place, judge_commits
from tests.integration.processor.wait_topic import Story
from tests.support.kafka_io import ReadRecord

INPUT = ("input", 0)


def registered(offset: int) -> Story:
    """Return the story of a record whose wait record has this offset in partition 3."""
    return Story((ReadRecord("wait", 3, offset, 0, "append", b"id", b"value", ()),), ())


def look(committed: int, wait_end: int) -> Look:
    return Look(0, 1, {INPUT: committed}, {3: wait_end}, {3: wait_end}, {})


# The two records of the input were registered in the other order.
TOLD: dict[Place, Story] = {(0, 0): registered(8), (0, 1): registered(5)}


def test_a_commit_up_to_what_is_registered_is_fine() -> None:
    judge_commits([look(0, 6), look(1, 9), look(2, 9), look(2, 9)], TOLD)


def test_a_commit_that_passed_a_record_before_its_registration_is_found() -> None:
    with pytest.raises(AssertionError, match="when 0 wasn't registered"):
        judge_commits([look(1, 8), look(2, 9)], TOLD)


def test_a_commit_that_passed_a_record_that_was_never_registered_is_found() -> None:
    with pytest.raises(AssertionError, match="when 2 wasn't registered"):
        judge_commits([look(3, 99)], TOLD)


def test_a_commit_that_went_back_is_found() -> None:
    with pytest.raises(AssertionError, match="went back from 2 to 1"):
        judge_commits([look(2, 9), look(1, 9)], TOLD)
