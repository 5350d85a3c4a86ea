"""What the fault tests judge commits by finds a commit that came too early, and one that went back."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from tests.chaos.history.history import Poll
from tests.faults.processor.observation import judge_commits
from tests.integration.processor.calls import Place
from tests.integration.processor.wait_topic import Story
from tests.support.kafka_io import ReadRecord

# The two records of the input were registered in the other order.
STORIES: dict[Place, Story] = {
    (0, offset): Story((ReadRecord("wait", 3, registered, 0, "append", b"id", b"value", ()),), ())
    for offset, registered in ((0, 8), (1, 5))
}


@pytest.mark.parametrize(
    ("polls", "found"),
    [
        ([(0, 6), (1, 9), (2, 9), (2, 9)], ""),
        ([(1, 8), (2, 9)], "when 0 wasn't registered"),
        ([(3, 99)], "when 2 wasn't registered"),
        ([(2, 9), (1, 9)], "went back from 2 to 1"),
    ],
)
def test_a_commit_too_early_or_one_that_went_back_is_found(polls: list[tuple[int, int]], found: str) -> None:
    seen = [Poll(0, 1, {("input", 0): committed}, {3: end}, {3: end}, {}) for committed, end in polls]
    with pytest.raises(AssertionError, match=found) if found else nullcontext():
        judge_commits(seen, STORIES)
