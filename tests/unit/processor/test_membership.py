"""How a member is configured and what a share group must allow, when it joins again, when `--once` ends (KIP-848)."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer

from processor.intake.assigned_log import AssignedLog
from processor.intake.group_config import TUNING, group_config
from processor.intake.membership import Membership
from processor.intake.replay_progress import ReplayProgress, Window
from processor.intake.share_group_limits import share_group_problems
from processor.intake.stop_at_ends import Share, StopAtEnds, share_of
from tests.support.naming import Names
from tests.support.settings import settings_against
from tests.unit.processor.parts import HaltedClock
from wait_registry.diagnosis import Severity
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.processor import GroupProtocol, ProcessorSettings, share_problems
from wait_registry.settings.tree import Settings

FIRST, SECOND, THIRD = ("orders", 0), ("orders", 1), ("orders", 2)


class _Member:
    """A member that has the first partition and counts how often it joined again."""

    def __init__(self) -> None:
        self.joined_again = 0
        self.membership = Membership(ProcessorSettings(group_protocol=GroupProtocol.CONSUMER))
        self.membership.started("own")
        self.membership.assigned("own", [FIRST])
        self.membership.joined = False

    def looks(self, *due: TopicPartition) -> int:
        everything = {"own": frozenset(due)}
        self.membership.compare(GroupDescription(False, {"own": frozenset()}, everything))
        self.joined_again += self.membership.must_join_again()
        return self.joined_again


@pytest.mark.guarantee("P8.21")
@pytest.mark.parametrize(
    ("second", "joined_again"),
    [
        pytest.param([SECOND, SECOND], [0, 1], id="at the second comparison"),
        pytest.param([SECOND, THIRD, FIRST], [0, 0, 0], id="another difference each time is a group on its way"),
        pytest.param([SECOND, FIRST, SECOND], [0, 0, 0], id="what has come meanwhile is forgotten"),
        pytest.param([SECOND] * 4, [0, 1, 1, 2], id="it gets time before it is repeated"),
    ],
)
def test_a_member_joins_again(second: list[TopicPartition], joined_again: list[int]) -> None:
    member = _Member()
    assert [member.looks(FIRST, due) for due in second] == joined_again


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


def _once(*places: TopicPartition) -> StopAtEnds:
    """Return who finds one record in each partition."""
    settings = Settings.model_validate({"kafka": {"bootstrap_servers": "127.0.0.1:1"}})
    return StopAtEnds(settings, dict.fromkeys(places, 1), HaltedClock())


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
    once.compare(nobody, GroupDescription(stable=False), "own")
    assert not once.reached(_read(FIRST))
    assert once.asks


@pytest.mark.parametrize("other", ["may be dead", "is alive"])
def test_partitions_of_another_member_are_left_to_it_only_if_it_lives(other: str) -> None:
    share = share_of(
        [SECOND], {FIRST: "own", SECOND: "other"}, "own", alive={"other"} if other == "is alive" else {"own"}
    )
    assert (share.settled, share.ours, share.left) == (other == "is alive", {FIRST}, ((SECOND, "other"),))


def test_finished_partitions_are_ignored() -> None:
    assert share_of([], {FIRST: "own", SECOND: "dead"}, "own", alive=set()).settled


def test_unassigned_partitions_are_waited_for() -> None:
    assert not share_of([FIRST], {}, "own", alive={"other"}).settled


PLACE = ("orders", 0)


def progress(*steps: tuple[str, int]) -> ReplayProgress:
    """Return the progress of the range 10 to 19 after some steps."""
    found, log = ReplayProgress({PLACE: range(10, 20)}), AssignedLog(PLACE, 10)
    for step, offset in steps:
        if step == "poll":
            log.polled_below(offset)
            found.note_polled(PLACE, offset)
        elif step == "beyond":  # a record behind the range, which isn't handed on
            log.polled_below(offset)
        elif step == "end":
            log.reached_end(offset)
        elif step == "rewind":
            log.rewind(offset)
            found.note_rewound(PLACE, offset)
        else:
            found.note_settled(PLACE, offset)
        found.note_read(log)
    return found


@pytest.mark.guarantee("P1.34")
@pytest.mark.parametrize(
    ("steps", "left"),
    [
        pytest.param([], range(10, 20), id="nothing polled"),
        pytest.param([("poll", 20)], range(10, 20), id="polled, not settled"),
        pytest.param([("poll", 20), ("settle", 15)], range(15, 20), id="settled in part"),
        pytest.param([("poll", 20), ("settle", 20)], None, id="settled"),
        pytest.param([("poll", 15), ("settle", 15)], range(15, 20), id="read in part"),
        pytest.param([("poll", 15), ("settle", 15), ("end", 19)], range(15, 20), id="the end of the log is in it"),
        pytest.param([("poll", 15), ("settle", 15), ("end", 20)], None, id="no record before the end of the log"),
        pytest.param([("poll", 15), ("settle", 15), ("beyond", 31)], None, id="the next record is behind it"),
        pytest.param([("poll", 15), ("beyond", 31), ("settle", 14)], range(14, 20), id="the last record isn't settled"),
        pytest.param([("beyond", 31)], None, id="no record in it"),
        pytest.param([("poll", 20), ("rewind", 17), ("settle", 17)], range(17, 20), id="the rest isn't due yet"),
        pytest.param([("poll", 20), ("rewind", 17), ("poll", 20), ("settle", 20)], None, id="the rest was due"),
    ],
)
def test_a_range_is_left_from_its_first_unsettled_record(steps: list[tuple[str, int]], left: range | None) -> None:
    assert progress(*steps).left() == ({} if left is None else {PLACE: left})


def test_all_ranges_must_be_read() -> None:
    two = ReplayProgress({PLACE: range(10, 20), ("orders", 1): range(3)})
    logs = {place: AssignedLog(place, 0) for place in two.ranges}
    logs[PLACE].polled_below(20)
    assert [two.note_read(log) for log in logs.values()] == [True, False]
    assert not two.reached(logs)
    logs["orders", 1].reached_end(3)
    assert [two.note_read(log) for log in logs.values()] == [False, True]
    assert two.reached(logs)


@pytest.mark.guarantee("P1.34")
def test_the_command_for_the_rest_has_the_window() -> None:
    rest = ReplayProgress({PLACE: range(10, 20)}, Window(1_700_000_000_001, 1_700_000_060_000)).rest()
    assert rest == (
        "waitreg replay --from-time 2023-11-14T22:13:20.001Z --to-time 2023-11-14T22:14:20.000Z orders:0:10-20"
    )


CONFIG = {
    "share.record.lock.duration.ms": "30000",
    "share.isolation.level": "read_committed",
    "share.auto.offset.reset": "earliest",
}
SHARE: dict[str, Any] = {"source": "share", "registration": "off"}


def settings(**own: Any) -> ProcessorSettings:
    return ProcessorSettings.model_validate({"group": "shop", **SHARE, **own})


@pytest.mark.parametrize(
    ("own", "severity"),
    [
        ({"handler_timeout_s": 4, "max_attempts": 3}, [Severity.ERROR]),  # 3 x 4 + 2 x 10 = 32
        ({"handler_timeout_s": 3, "max_attempts": 3}, []),
        ({"handler_timeout_s": 30, "max_attempts": 1}, [Severity.ERROR]),
        ({"handler_timeout_s": 29.9, "max_attempts": 1}, []),
    ],
)
def test_all_attempts_and_their_pauses_fit_the_lease(own: dict[str, Any], severity: list[Severity]) -> None:
    problems = share_group_problems(settings(**own), CONFIG)
    assert [problem.severity for problem in problems] == severity


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"share.isolation.level": "read_uncommitted"}, "aborted transactions"),
        ({"share.auto.offset.reset": "latest"}, "before the group's first poll"),
    ],
)
def test_a_configuration_that_surprises_is_warned_of(changed: dict[str, str], named: str) -> None:
    (problem,) = share_group_problems(settings(handler_timeout_s=5, max_attempts=1), CONFIG | changed)
    assert problem.severity is Severity.WARNING
    assert named in problem.message


def test_a_broker_without_share_groups_is_refused() -> None:
    (problem,) = share_group_problems(settings(), {})
    assert "needs Kafka 4.2" in problem.message


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ({"registration": "deferred"}, "processor.registration is deferred"),
        ({"ordering": "key"}, "processor.ordering is key"),
        ({"retry": {"delays": ("10s",)}}, "processor.retry.delays is 10s"),
        ({"delay_s": 60}, "processor.delay_s is 60"),
        ({"group_protocol": "consumer"}, "processor.group_protocol is consumer"),
    ],
)
def test_what_needs_offsets_is_refused(own: dict[str, Any], named: str) -> None:
    (problem,) = share_problems(settings(**own))
    assert problem.severity is Severity.ERROR
    assert problem.message.startswith(named)
    assert list(share_problems(settings(**{**own, "source": "group"}))) == []


def test_the_least_settings_of_a_share_group_contradict_nothing() -> None:
    assert list(share_problems(settings())) == []
