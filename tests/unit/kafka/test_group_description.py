"""Partitions that a member has and shouldn't, and those that it should have and no member has."""

from __future__ import annotations

import pytest

from wait_registry.kafka.group_description import GroupDescription
from wait_registry.records.topics import TopicPartition

FIRST, SECOND, THIRD = ("orders", 0), ("orders", 1), ("orders", 2)
Partitions = set[TopicPartition]


@pytest.mark.guarantee("P8.21")
@pytest.mark.parametrize(
    ("due", "assigned", "of_others", "differing"),
    [
        pytest.param({FIRST, SECOND}, {FIRST, SECOND}, set(), set(), id="what is due"),
        pytest.param({FIRST, SECOND}, {FIRST}, set(), {SECOND}, id="due and held by no member"),
        pytest.param({FIRST, SECOND}, {FIRST}, {SECOND}, set(), id="due and held by another member"),
        pytest.param({FIRST}, {FIRST, SECOND}, {THIRD}, {SECOND}, id="held and not due"),
    ],
)
def test_a_member_differs_by_what_it_lacks_and_no_other_holds(
    due: Partitions, assigned: Partitions, of_others: Partitions, differing: Partitions
) -> None:
    held = {"own": frozenset(assigned & due), "other": frozenset(of_others)}
    group = GroupDescription(False, held, {"own": frozenset(due), "other": frozenset(of_others)})
    assert group.differing("own", frozenset(assigned)) == differing


def test_an_unknown_member_should_hold_nothing() -> None:
    assert GroupDescription(True, {}, {}).differing("own", frozenset({FIRST})) == {FIRST}
