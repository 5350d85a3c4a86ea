"""Where a partition starts, and that what the client returns is judged by the present assignment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from processor.fault import Fault
from processor.intake.assigned_log import AssignedLog
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.gone_positions import GonePositions
from processor.intake.polled_messages import PolledMessages
from processor.intake.start_decision import Start, own_start
from processor.intake.start_offsets import ASK_AT_ONCE_S, ASK_PAUSE_S, StartOffsets
from tests.unit.processor.parts import PLACE
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata

WAIT_TOPIC, NOTHING_KNOWN = TopicIdentity("wait", "id", 1), ConsumedTopics("group", {})
PARTITION = TopicPartition("orders", 2)
COMMITS = CommitMetadata(WAIT_TOPIC)


class Coordinator:
    """Refuses ``refusals`` questions, then answers that nothing was ever committed."""

    def __init__(self, refusals: int) -> None:
        self.left = refusals

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        assert timeout == ASK_AT_ONCE_S, "a rebalance waits"
        if self.left:
            self.left -= 1
            raise KafkaException(KafkaError(KafkaError.NOT_COORDINATOR))
        return [TopicPartition(p.topic, p.partition, -1001) for p in partitions]

    def asked_by_another(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        if self.left:
            self.left -= 1
            raise TransientError("no answer")
        return [TopicPartition(p.topic, p.partition, 17) for p in partitions]


def start_offsets(
    stopping: Callable[[float], bool], another: Callable[[list[TopicPartition]], list[TopicPartition]]
) -> StartOffsets:
    def ends(places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, 99)

    return StartOffsets(WAIT_TOPIC, NOTHING_KNOWN, stopping, another, ends, lambda places: dict.fromkeys(places, 7))


@pytest.mark.guarantee("P8.5")
def test_the_consumer_is_asked_once_since_a_rebalance_waits_for_it() -> None:
    def nobody(partitions: list[TopicPartition]) -> list[TopicPartition]:
        raise AssertionError("a client of its own takes its time to connect")

    starts = start_offsets(lambda pause_s: False, nobody)
    assert starts.at_once(Coordinator(1), [PARTITION]) is None
    assert starts.at_once(Coordinator(0), [PARTITION]) == [Start("orders", 2, None, None, 99, COMMITS)]


def test_each_refusal_is_followed_by_a_pause() -> None:
    pauses: list[float] = []
    coordinator = Coordinator(3)
    starts = start_offsets(lambda pause_s: bool(pauses.append(pause_s)), coordinator.asked_by_another)
    assert starts.later([PARTITION], lambda: True) == [Start("orders", 2, 17, None, 99, COMMITS)]
    assert pauses == [ASK_PAUSE_S] * 4


def test_a_process_that_is_to_end_begins_nowhere_and_reports_no_failure() -> None:
    starts = start_offsets(lambda pause_s: True, Coordinator(1_000).asked_by_another)
    assert starts.later([PARTITION], lambda: True) == []


def test_unwanted_start_offsets_are_requested_no_more() -> None:
    wanted = [True, True, False]
    coordinator = Coordinator(1_000)
    starts = start_offsets(lambda pause_s: False, coordinator.asked_by_another)
    assert starts.later([PARTITION], lambda: wanted.pop(0)) == []
    assert coordinator.left == 998


@pytest.mark.guarantee("P1.43")
@pytest.mark.parametrize("ends", [[None, 18], [None, 17], [99]])
def test_what_was_sent_to_the_origin_is_never_taken_for_new_records(ends: list[int | None]) -> None:
    """An end that isn't known yet is asked for again."""
    said = CommitMetadata(WAIT_TOPIC, redeliver_to="origin").encode(17)

    def listed(places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        return {place: end for place in places if (end := ends.pop(0)) is not None}

    def committed(partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition("orders", 2, 17, said)]

    starts = StartOffsets(WAIT_TOPIC, NOTHING_KNOWN, lambda _: False, committed, listed, lambda places: {})
    if ends[-1] == 17:
        assert [start.offset for start in starts.later([PARTITION], lambda: True)] == [17]
    else:
        with pytest.raises(ConfigurationError, match=r'orders\[2\] .* set processor\.redeliver_to = "origin"'):
            starts.later([PARTITION], lambda: True)
    assert not ends


TOPIC = "orders.shop.retry.1h"
OWN, KEPT = (CommitMetadata(WAIT_TOPIC, "A", "eager", 50, kept) for kept in (None, 7))
DELETED = CommitMetadata(WAIT_TOPIC, "Z", "eager", 50)


@pytest.mark.guarantee("P1.40", "P1.41")
@pytest.mark.parametrize(
    ("recorded", "offset", "first", "end", "starts_at", "kept_below", "said"),
    [
        (OWN, 5, 5, 9, 5, None, None),
        (OWN, 5, None, None, 5, None, None),
        (OWN, 0, 4, 9, 4, None, "begins at 4 now: 4 offsets"),
        (None, 0, 4, 9, 4, None, "begins at 4 now: another program committed 0"),
        (OWN, 10, 0, 9, None, None, "ends before the group's offset 10"),
        (DELETED, 5, 0, 9, None, None, "was recreated"),
        (None, 5, 0, 9, 5, 5, "holds records before 5"),
        (None, 5, None, 9, 5, 5, "holds records before 5"),
        (None, 5, 5, 9, 5, None, None),
        (KEPT, 8, 2, 9, 8, 7, "holds records before 7"),
        (KEPT, 8, 7, 9, 8, None, None),
    ],
)
def test_only_what_the_group_has_handled_counts_as_passed(
    recorded: CommitMetadata | None,
    offset: int,
    first: int | None,
    end: int | None,
    starts_at: int | None,
    kept_below: int | None,
    said: str | None,
) -> None:
    commits = CommitMetadata(WAIT_TOPIC, "A")
    start, warning = own_start(Start(TOPIC, 0, offset, recorded, end, commits), first)
    assert (start.offset, start.commits) == (starts_at, CommitMetadata(WAIT_TOPIC, "A", kept_below=kept_below))
    assert start.emptied_id == (None if kept_below else "A")
    assert (warning is None) == (said is None)
    assert (said or "") in (warning or "")
    moved = recorded is not None and starts_at != offset
    assert start.recorded == (recorded.with_recorded(None, "eager") if moved and recorded else recorded)


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


def offsets_known(committed: int, first: int) -> StartOffsets:
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
    starts = offsets_known(committed, first)
    assert starts.is_passed(PLACE, 4, lambda: True) is passed
    assert starts.is_passed(PLACE, 4, lambda: False) is None, "it was given up, so there is nothing to report"


@pytest.mark.parametrize(("committed", "lost"), [(9, False), (4, True)])
def test_a_partition_that_is_given_up_hides_nothing_of_the_others(committed: int, lost: bool) -> None:
    given_up, kept = AssignedLog(("input", 1), 4), AssignedLog(("input", 2), 4)
    assigned, fault, joined = {log.place: log for log in (given_up, kept)}, Fault(), list[str]()
    gone = GonePositions(assigned, offsets_known(committed, 9), joined.append, fault)
    for log in (given_up, kept):
        gone.note(log, out_of_range(4))
    check = gone.check()
    del assigned[given_up.place]
    check()
    assert (fault.error is not None, [why.split()[-3] for why in joined]) == (lost, [] if lost else ["input[2]"])
