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


def test_who_has_what_is_due_differs_in_nothing() -> None:
    assert _differing({FIRST, SECOND}, {FIRST, SECOND}) == frozenset()


def test_what_is_due_and_nobodys_differs() -> None:
    assert _differing({FIRST, SECOND}, {FIRST}) == {SECOND}


@pytest.mark.guarantee("P8.21")
def test_what_another_one_has_to_give_up_first_does_not() -> None:
    assert _differing({FIRST, SECOND}, {FIRST}, others={SECOND}) == frozenset()


def test_what_is_to_be_given_up_differs() -> None:
    assert _differing({FIRST}, {FIRST, SECOND}, others={THIRD}) == {SECOND}


def test_whom_the_coordinator_does_not_know_is_to_have_nothing() -> None:
    assert GroupDescription(True, {}, {}).differing("own", frozenset({FIRST})) == {FIRST}
