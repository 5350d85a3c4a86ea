"""How a member is configured, and that it joins again after two comparisons that show a missed assignment."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from processor.intake.group_config import TUNING, group_config
from processor.intake.membership import Membership
from tests.support.naming import Names
from tests.support.settings import settings_against
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


@pytest.mark.parametrize("name", [*TUNING, "fetch.message.max.bytes"])
def test_it_replaces_ours(name: str) -> None:
    given = {name: 77_777}
    settings = settings_against("127.0.0.1:1", "postgresql://x@127.0.0.1:1/x", Names(), {"kafka.librdkafka": given})
    config = group_config(settings)
    assert config[name] == 77_777
    # Two names of one property would be counted by their order.
    assert not {"fetch.message.max.bytes", "max.partition.fetch.bytes"} <= set(config)


def test_the_names_are_those_of_the_client() -> None:
    assert Consumer({"group.id": "any", **TUNING}) is not None
