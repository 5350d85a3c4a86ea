"""The life of a record is a total table; a commit never passes one that isn't safe, and offsets contradict nothing."""

from __future__ import annotations

import itertools
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.protocol.partition import Partition, PartitionError, WarmUp
from processor.protocol.record import IN_FLIGHT, RUNNING, TRANSITIONS, UNSTARTED, LifecycleError, State, Step
from tests.unit.processor.parts import PLACE, entries

# What happens, each with a number from which its argument is drawn.
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "read to", "make safe", "request", "confirm", "confirm an old one"]),
        st.integers(0, 1 << 30),
    ),
    max_size=60,
)


class Moving:
    """A partition, and what is known of it by a plain walk over its records."""

    def __init__(self, start: int | None) -> None:
        self.partition = Partition(PLACE, start)
        self.records: list[tuple[int, bool]] = []
        self.requests = [self.partition.requested]

    def take(self, step: str, number: int) -> None:
        partition = self.partition
        if step == "add":
            # Offsets have gaps: compaction and transaction markers.
            offsets = array("q")
            at = max(partition.position, 0)
            for gap in range(number % 4):
                at += gap
                offsets.append(at)
                at += 1
            partition.add(offsets)
            self.records += [(offset, False) for offset in offsets]
        elif step == "read to":
            partition.read_to(number % 8)
        elif step == "make safe" and self.records:
            at = number % len(self.records)
            partition.make_safe(at)
            self.records[at] = (self.records[at][0], True)
        elif step == "request":
            self.requests.append(partition.request())
        elif step == "confirm":
            partition.confirm(self.requests[-1], 1.0)
        elif step == "confirm an old one":
            partition.confirm(self.requests[number % len(self.requests)], 1.0)

    def first_unsafe(self) -> int:
        return next((offset for offset, safe in self.records if not safe), self.partition.position)


@pytest.mark.guarantee("P2.1")
@given(st.none() | st.integers(0, 5), STEPS)
def test_offsets_keep_their_order_and_no_commit_passes_a_gap(start: int | None, steps: list[tuple[str, int]]) -> None:
    moving = Moving(start)
    partition = moving.partition
    for step, number in steps:
        moving.take(step, number)
        assert partition.confirmed <= partition.requested <= partition.committable <= partition.position
        assert partition.committable == moving.first_unsafe()
        assert partition.polled == len(moving.records)
        assert partition.uncommitted == sum(offset >= partition.confirmed for offset, _ in moving.records)


@given(STEPS, st.data())
def test_the_last_commit_stops_at_the_first_unstarted_record(steps: list[tuple[str, int]], data: st.DataObject) -> None:
    moving = Moving(0)
    for step, number in steps:
        moving.take(step, number)
    partition = moving.partition
    requested, committable = partition.requested, partition.committable
    later = [offset for offset, _ in moving.records if offset >= requested]
    first = data.draw(st.none() | st.sampled_from(later)) if later else None
    target = partition.last_commit(first)
    assert target == min(committable, committable if first is None else first)
    assert requested <= target == partition.requested


def test_the_broker_can_not_confirm_what_was_not_requested() -> None:
    partition = Partition(PLACE, 3)
    partition.add(array("q", [3, 4]))
    partition.make_safe(0)
    with pytest.raises(PartitionError, match=r"input\[0\]: 4 is confirmed, requested was 3"):
        partition.confirm(4, 0.0)
    assert partition.request() == 4
    partition.confirm(4, 7.0)
    assert (partition.confirmed, partition.confirmed_s) == (4, 7.0)


def test_records_are_polled_once() -> None:
    partition = Partition(PLACE, None)
    partition.add(array("q", [3, 4]))
    with pytest.raises(PartitionError, match="polled offset 4 again, the position is 5"):
        partition.add(array("q", [4]))


@pytest.mark.guarantee("P1.18")
def test_the_warm_up_has_the_first_records_below_the_end_of_the_log() -> None:
    partition = Partition(PLACE, 10, WarmUp(records=3, end=20))
    places = [(0, 10), (1, 19), (2, 20), (3, 12)]
    assert [partition.in_warm_up(number, offset) for number, offset in places] == [True, True, False, False]


REGISTER, REGISTERED, REFUSE, RELEASE, OVERDUE = Step.REGISTER, Step.REGISTERED, Step.REFUSE, Step.RELEASE, Step.OVERDUE
START, SUCCEED, FAIL, ACKNOWLEDGED = Step.START, Step.SUCCEED, Step.FAIL, Step.PUBLISHED
DROP, ABANDON = Step.DROP, Step.ABANDON

HELD = [REGISTER, REGISTERED]
RUNS_REGISTERED = [*HELD, RELEASE, START]
RUNS_REGISTERING = [RELEASE, START, REGISTER]

# Each way through the picture of record.py, and where it ends.
LIVES: dict[str, tuple[list[Step], State]] = {
    "registered, then done": ([*RUNS_REGISTERED, SUCCEED], State.SETTLED),
    "registered, then failed": ([*RUNS_REGISTERED, FAIL, ACKNOWLEDGED], State.SETTLED),
    "renewed before its call": ([*HELD, RELEASE, OVERDUE, REGISTERED, RELEASE, START], State.RUNNING_REGISTERED),
    "renewed in the warm-up": ([*HELD, OVERDUE, REGISTERED], State.HELD),
    "renewed, given up": ([*HELD, OVERDUE, DROP], State.RENEWING),
    "too large for its registration": ([REGISTER, REFUSE, FAIL, ACKNOWLEDGED], State.SETTLED),
    "malformed": ([FAIL, ACKNOWLEDGED], State.SETTLED),
    "done without a registration": ([RELEASE, START, SUCCEED], State.SETTLED),
    "failed without a registration": ([RELEASE, START, FAIL, ACKNOWLEDGED], State.SETTLED),
    "registered before its call, deferred": ([RELEASE, REGISTER, REGISTERED], State.READY_REGISTERED),
    "too large before its call, deferred": ([RELEASE, REGISTER, REFUSE, START], State.RUNNING_UNREGISTRABLE),
    "starts while it is registered": ([RELEASE, REGISTER, START, REGISTERED], State.RUNNING_REGISTERED),
    "done before the report": ([*RUNS_REGISTERING, SUCCEED, REGISTERED], State.SETTLED),
    "done before the refusal": ([*RUNS_REGISTERING, SUCCEED, REFUSE], State.SETTLED),
    "failed before the report": ([*RUNS_REGISTERING, FAIL, REGISTERED, ACKNOWLEDGED], State.SETTLED),
    "dead letter before the report": ([*RUNS_REGISTERING, FAIL, ACKNOWLEDGED, REGISTERED], State.SETTLED),
    "failed, then refused": ([*RUNS_REGISTERING, FAIL, REFUSE, ACKNOWLEDGED], State.SETTLED),
    "refused, then done": ([*RUNS_REGISTERING, REFUSE, SUCCEED], State.SETTLED),
    "refused, then failed": ([*RUNS_REGISTERING, REFUSE, FAIL], State.PUBLISHING),
    "given up while polled": ([DROP], State.DROPPED),
    "given up, then its report": ([REGISTER, DROP, REGISTERED], State.DROPPED),
    "given up, then the end of its call": ([RELEASE, START, DROP, SUCCEED], State.DROPPED),
    "given up, but its registered call ends": ([*RUNS_REGISTERED, DROP, SUCCEED], State.SETTLED),
    "its call is cancelled": ([*RUNS_REGISTERED, ABANDON], State.DROPPED),
    "held for good": ([*HELD, ABANDON], State.DROPPED),
}


@pytest.mark.parametrize(("steps", "end"), LIVES.values(), ids=LIVES)
def test_each_life_ends_in_its_state(steps: list[Step], end: State) -> None:
    [one] = entries(0)
    for step in steps:
        one.take(step)
    assert one.state is end


def reach() -> dict[State, list[Step]]:
    """Return each state that can be reached, with steps that lead to it."""
    ways: dict[State, list[Step]] = {State.POLLED: []}
    pending = [State.POLLED]
    for state in pending:
        for step, target in TRANSITIONS[state].items():
            if target is not None and target not in ways:
                ways[target] = [*ways[state], step]
                pending.append(target)
    return ways


WAYS = reach()


def test_every_state_has_a_row_and_can_be_reached() -> None:
    assert set(TRANSITIONS) == set(State) == set(WAYS)


@pytest.mark.guarantee("P8.26")
@pytest.mark.parametrize(("state", "step"), list(itertools.product(State, Step)), ids=lambda value: value.name)
def test_every_pair_moves_is_ignored_or_is_a_fault(state: State, step: Step) -> None:
    [one] = entries(0)
    for taken in WAYS[state]:
        one.take(taken)
    if step not in TRANSITIONS[state]:
        with pytest.raises(LifecycleError, match=rf"input\[0\]@0 {state.name} can't take the step {step.name}"):
            one.take(step)
        assert one.state is state
        return
    target = TRANSITIONS[state][step]
    assert one.take(step) is (target is not None)
    assert one.state is (state if target is None else target)


def test_a_settled_record_takes_no_step_and_a_dropped_one_never_returns() -> None:
    assert TRANSITIONS[State.SETTLED] == {DROP: None}
    assert set(TRANSITIONS[State.DROPPED].values()) == {None}


def test_states_are_grouped_by_what_their_steps_say() -> None:
    assert {state.name for state in RUNNING} == {
        *("RUNNING", "RUNNING_REGISTERING", "RUNNING_REGISTERED", "RUNNING_UNREGISTRABLE"),
    }
    assert {state.name for state in UNSTARTED} == {
        *("POLLED", "REGISTERING", "HELD"),
        *("READY", "READY_REGISTERING", "READY_REGISTERED", "READY_UNREGISTRABLE"),
    }
    assert {state.name for state in IN_FLIGHT} == {
        *("REGISTERING", "READY_REGISTERING", "RENEWING", "RUNNING_REGISTERING"),
        *("DONE_REGISTERING", "PUBLISHING_REGISTERING"),
    }
