"""Partitions that a member has and shouldn't, and those that it should have and no member has."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from wait_registry.kafka.group_description import GroupDescription
from wait_registry.records.topics import TopicPartition

FIRST, SECOND, THIRD = ("orders", 0), ("orders", 1), ("orders", 2)


def _differing(
    due: set[TopicPartition], assigned: set[TopicPartition], others: Iterable[TopicPartition] = ()
) -> frozenset[TopicPartition]:
    held = {"own": frozenset(assigned & due), "other": frozenset(others)}
    group = GroupDescription(False, held, {"own": frozenset(due), "other": frozenset(others)})
    return group.differing("own", frozenset(assigned))


def test_a_member_with_its_due_partitions_has_no_difference() -> None:
    assert _differing({FIRST, SECOND}, {FIRST, SECOND}) == frozenset()


def test_a_due_partition_that_no_member_holds_is_a_difference() -> None:
    assert _differing({FIRST, SECOND}, {FIRST}) == {SECOND}


@pytest.mark.guarantee("P8.21")
def test_a_due_partition_of_another_member_is_no_difference() -> None:
    assert _differing({FIRST, SECOND}, {FIRST}, others={SECOND}) == frozenset()


def test_a_held_partition_that_is_not_due_is_a_difference() -> None:
    assert _differing({FIRST}, {FIRST, SECOND}, others={THIRD}) == {SECOND}


def test_an_unknown_member_should_hold_nothing() -> None:
    assert GroupDescription(True, {}, {}).differing("own", frozenset({FIRST})) == {FIRST}
