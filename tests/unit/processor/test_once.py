"""`--once` ends when all records are processed here, or by members that are certainly alive."""

from __future__ import annotations

import pytest

from processor.intake.assigned_log import AssignedLog
from processor.service.once import Once, Share, share_of
from tests.unit.processor.parts import HaltedClock
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.root import Settings

FIRST, SECOND = ("orders", 0), ("orders", 1)


def _once(*places: TopicPartition) -> Once:
    """Return who finds one record in each partition."""
    settings = Settings.model_validate({"kafka": {"bootstrap_servers": "127.0.0.1:1"}})
    return Once(settings, dict.fromkeys(places, 1), HaltedClock())


def _read(*places: TopicPartition) -> dict[TopicPartition, AssignedLog]:
    return {place: AssignedLog(place, 1) for place in places}


def test_a_member_that_has_read_all_partitions_is_done() -> None:
    once = _once(FIRST, SECOND)
    assert once.reached(_read(FIRST, SECOND))
    assert not once.asks


@pytest.mark.guarantee("P8.22")
def test_a_member_without_partitions_is_not_done() -> None:
    once = _once(FIRST)
    assert not once.reached({})
    assert once.asks


def test_a_member_that_still_reads_need_not_ask() -> None:
    once = _once(FIRST, SECOND)
    assert not once.reached({FIRST: AssignedLog(FIRST, 0)})
    assert not once.asks


def test_a_partition_lost_since_the_answer_is_waited_for() -> None:
    once = _once(FIRST, SECOND)
    once.share = Share(True, frozenset({FIRST}))
    assert once.reached(_read(FIRST))
    assert not once.reached({})


def test_a_group_between_assignments_is_asked_again() -> None:
    once = _once(FIRST, SECOND)
    once.share = Share(True)
    nobody: object = None
    once.judge(nobody, GroupDescription(stable=False), "own")
    assert not once.reached(_read(FIRST))
    assert once.asks


def test_partitions_of_a_member_that_may_be_dead_are_waited_for() -> None:
    share = share_of([SECOND], {FIRST: "own", SECOND: "other"}, "own", alive={"own"})
    assert (share.settled, share.ours, share.left) == (False, {FIRST}, ((SECOND, "other"),))


def test_partitions_of_a_live_member_are_left_to_it() -> None:
    share = share_of([SECOND], {FIRST: "own", SECOND: "other"}, "own", alive={"other"})
    assert (share.settled, share.left) == (True, ((SECOND, "other"),))


def test_finished_partitions_are_ignored() -> None:
    assert share_of([], {FIRST: "own", SECOND: "dead"}, "own", alive=set()).settled


def test_unassigned_partitions_are_waited_for() -> None:
    assert not share_of([FIRST], {}, "own", alive={"other"}).settled
