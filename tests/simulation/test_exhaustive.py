"""The explorer finds what is there to be found, the nearest first."""

from __future__ import annotations

import pytest

from tests.simulation.exhaustive import NEVER_ENDS, State, Step, TooManyStates, explore


class Counting:
    """Counts up to an end; nothing leads on from ``trap``, and a step from ``bad_step`` breaks a guarantee."""

    name = "counting"

    def __init__(self, trap: int = -1, bad: int = -1, bad_step: int = -1, end: int = 5) -> None:
        self.trap, self.bad, self.bad_step, self.end = trap, bad, bad_step, end

    def initial(self) -> State:
        return (0, 0)

    def steps(self, state: State) -> list[Step]:
        left, right = state
        if left in (self.trap, self.end):
            return []
        if left == self.bad_step:
            return [("a bad step", False, "a guarantee")]
        return [("left", False, (left + 1, right)), ("right", False, (left, min(right + 1, 2)))]

    def broken(self, state: State) -> str | None:
        return "a state" if state[0] == self.bad else None

    def settled(self, state: State) -> bool:
        return bool(state[0] == self.end)

    def canonical(self, state: State) -> State:
        return state


def test_every_state_is_counted_once_and_every_step() -> None:
    explored = explore(Counting())
    assert (explored.states, explored.steps, explored.depth) == (18, 30, 7)
    assert explored.violation is None


def test_a_broken_state_is_found_by_the_shortest_way() -> None:
    violation = explore(Counting(bad=3)).violation
    assert violation is not None
    assert (violation.broken, violation.story) == ("a state", ("left", "left", "left"))


def test_a_step_that_breaks_a_guarantee_ends_the_story() -> None:
    violation = explore(Counting(bad_step=2)).violation
    assert violation is not None
    assert (violation.broken, violation.story) == ("a guarantee", ("left", "left", "a bad step"))


def test_a_state_from_which_nothing_ends_well_is_found() -> None:
    violation = explore(Counting(trap=2)).violation
    assert violation is not None
    assert violation.broken == NEVER_ENDS
    assert explore(Counting(trap=2), fair=False).violation is None


def test_faults_do_not_help_to_end_well() -> None:
    class OnlyByFault(Counting):
        def steps(self, state: State) -> list[Step]:
            return [(what, True, target) for what, _, target in super().steps(state)]

    violation = explore(OnlyByFault()).violation
    assert violation is not None
    assert violation.broken == NEVER_ENDS


def test_a_story_keeps_its_names_where_states_are_counted_once_for_both() -> None:
    class Twins:
        name = "twins"

        def initial(self) -> State:
            return (0, 0)

        def steps(self, state: State) -> list[Step]:
            one, two = state
            return [("one", False, (one + 1, two)), ("two", False, (one, two + 1))]

        def broken(self, state: State) -> str | None:
            return "both" if sorted(state) == [1, 3] else None

        def settled(self, state: State) -> bool:
            return False

        def canonical(self, state: State) -> State:
            return tuple(sorted(state))

    violation = explore(Twins()).violation
    assert violation is not None
    assert sorted((violation.story.count("one"), violation.story.count("two"))) == [1, 3]


def test_bounds_that_are_too_wide_are_refused() -> None:
    with pytest.raises(TooManyStates):
        explore(Counting(end=1_000), most_states=10)
