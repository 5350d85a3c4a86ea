"""A member joins the group again after two consecutive comparisons that show a missed assignment."""

from __future__ import annotations

import pytest

from processor.intake.membership import Membership
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import GroupProtocol, ProcessorSettings

FIRST, SECOND, THIRD = ("orders", 0), ("orders", 1), ("orders", 2)


class _Member:
    """A member that has the first partition and counts how often it joined again."""

    def __init__(self) -> None:
        self.rejoined = 0
        self.membership = Membership(ProcessorSettings(group_protocol=GroupProtocol.CONSUMER))
        self.membership.begin("own", {FIRST}, self._rejoin)

    def looks(self, *due: TopicPartition) -> int:
        everything = {"own": frozenset(due)}
        self.membership.compare(GroupDescription(False, {"own": frozenset()}, everything))
        return self.rejoined

    def _rejoin(self) -> None:
        self.rejoined += 1


@pytest.mark.guarantee("P8.21")
def test_it_joins_again_at_the_second_comparison() -> None:
    member = _Member()
    assert [member.looks(FIRST, SECOND), member.looks(FIRST, SECOND)] == [0, 1]


@pytest.mark.guarantee("P8.21")
def test_another_difference_each_time_is_a_group_on_its_way() -> None:
    member = _Member()
    assert [member.looks(FIRST, SECOND), member.looks(FIRST, THIRD), member.looks(FIRST)] == [0, 0, 0]


def test_what_has_come_meanwhile_is_forgotten() -> None:
    member = _Member()
    assert [member.looks(FIRST, SECOND), member.looks(FIRST), member.looks(FIRST, SECOND)] == [0, 0, 0]


def test_joining_again_gets_time_before_it_is_repeated() -> None:
    member = _Member()
    assert [member.looks(FIRST, SECOND) for _ in range(4)] == [0, 1, 1, 2]


def test_a_member_that_joins_again_by_itself_continues() -> None:
    member = _Member()
    member.membership.joined = True
    forgotten = GroupDescription(True, {"other": frozenset()}, {"other": frozenset()})
    for _ in range(2):
        member.membership.compare(forgotten)
        assert member.looks(FIRST) == 0
