"""What the client returns is judged by the present assignment, not by that of the request."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from processor.intake.assigned_log import AssignedLog
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.gone_positions import GonePositions
from processor.intake.polled_messages import PolledMessages
from processor.intake.start_offsets import StartOffsets
from processor.service.ending import Fault
from tests.unit.processor.parts import PLACE
from wait_registry.kafka.cluster import TopicIdentity


def out_of_range(offset: int) -> Any:
    error = KafkaError(KafkaError.OFFSET_OUT_OF_RANGE)
    read = {"topic": PLACE[0], "partition": PLACE[1], "offset": offset, "error": error}
    return SimpleNamespace(**{name: lambda what=what: what for name, what in read.items()})


@pytest.mark.parametrize(
    ("position", "reports"),
    [
        pytest.param(None, False, id="the partition is no longer assigned"),
        pytest.param(50, False, id="it was assigned again, behind that position"),
        pytest.param(4, True, id="it is there"),
        pytest.param(-1, True, id="it had no offset"),
    ],
)
def test_a_position_that_is_gone_counts_where_it_is_this_assignments(position: int | None, reports: bool) -> None:
    assigned = {} if position is None else {PLACE: AssignedLog(PLACE, position)}
    fault = Fault()
    assert PolledMessages("group", assigned, fault).sort([out_of_range(4)]) == {}
    assert (fault.error is not None) is reports


def start_offsets(committed: int, first: int) -> StartOffsets:
    """Return what knows that the group has committed an offset in each partition, and where each log begins."""

    def another(partitions: list[Any]) -> list[Any]:
        return [SimpleNamespace(offset=committed)]

    identity, consumed = TopicIdentity("wait", "id", 1), ConsumedTopics("group", {})
    return StartOffsets(
        identity, consumed, lambda _: False, another, lambda _: {}, lambda places: dict.fromkeys(places, first)
    )


@pytest.mark.parametrize(
    ("committed", "first", "passed"),
    [
        pytest.param(9, 9, True, id="another member has emptied the topic"),
        pytest.param(12, 9, True, id="another member is further"),
        pytest.param(4, 9, False, id="records were deleted unread"),
        pytest.param(8, 9, False, id="records were deleted behind another member too"),
        pytest.param(-1001, 9, False, id="nothing is committed"),
        pytest.param(4, 0, False, id="the topic was recreated"),
    ],
)
def test_nothing_is_lost_if_the_group_has_committed_what_is_gone(committed: int, first: int, passed: bool) -> None:
    starts = start_offsets(committed, first)
    assert starts.is_passed(PLACE, 4, lambda: True) is passed
    assert starts.is_passed(PLACE, 4, lambda: False) is None, "it was given up, so there is nothing to report"


@pytest.mark.parametrize(("committed", "lost"), [(9, False), (4, True)])
def test_a_partition_that_is_given_up_hides_nothing_of_the_others(committed: int, lost: bool) -> None:
    given_up, kept = AssignedLog(("input", 1), 4), AssignedLog(("input", 2), 4)
    assigned, fault, joined = {log.place: log for log in (given_up, kept)}, Fault(), list[str]()
    gone = GonePositions(assigned, start_offsets(committed, 9), joined.append, fault)
    for log in (given_up, kept):
        gone.note(log, out_of_range(4))
    judge = gone.judgment()
    del assigned[given_up.place]
    judge()
    assert (fault.error is not None, [why.split()[-3] for why in joined]) == (lost, [] if lost else ["input[2]"])
