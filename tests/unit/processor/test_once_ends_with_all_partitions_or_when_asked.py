"""``--once``: having read its partitions to their ends is enough only for who has them all; others ask the group."""

from __future__ import annotations

import pytest

from processor.assigned_partition import AssignedPartition
from processor.once import Once, Share
from tests.unit.processor.halted_clock import HaltedClock
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.root import Settings

FIRST, SECOND = ("orders", 0), ("orders", 1)


def _once(*places: TopicPartition) -> Once:
    """Return who finds one record in each partition."""
    settings = Settings.model_validate({"kafka": {"bootstrap_servers": "127.0.0.1:1"}})
    return Once(settings, dict.fromkeys(places, 1), HaltedClock())


def _read(*places: TopicPartition) -> dict[TopicPartition, AssignedPartition]:
    return {place: AssignedPartition(*place, 1) for place in places}


def test_who_has_everything_and_has_read_it_is_done_and_asks_nobody() -> None:
    once = _once(FIRST, SECOND)
    assert once.reached(_read(FIRST, SECOND))
    assert not once.asks


@pytest.mark.guarantee("P8.22")
def test_who_has_nothing_is_not_done_by_that() -> None:
    once = _once(FIRST)
    assert not once.reached({})
    assert once.asks


def test_who_still_reads_need_not_ask() -> None:
    once = _once(FIRST, SECOND)
    assert not once.reached({FIRST: AssignedPartition(*FIRST, 0)})
    assert not once.asks


def test_what_has_been_lost_since_the_group_was_asked_is_waited_for() -> None:
    once = _once(FIRST, SECOND)
    once.share = Share(True, frozenset({FIRST}))
    assert once.reached(_read(FIRST))
    assert not once.reached({})


def test_a_group_on_its_way_to_another_assignment_is_asked_again() -> None:
    once = _once(FIRST, SECOND)
    once.share = Share(True)
    nobody: object = None
    once.judge(nobody, GroupDescription(stable=False), "own")
    assert not once.reached(_read(FIRST))
    assert once.asks
