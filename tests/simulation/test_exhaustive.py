"""The explorer finds what is there to be found, the nearest first."""

from __future__ import annotations

from tests.simulation.exhaustive import NEVER_ENDS, State, Step, explore

END = 5


class Counting:
    """Counts up to an end; nothing leads on from ``trap``."""

    name = "counting"

    def __init__(self, trap: int = -1) -> None:
        self.trap = trap

    def initial(self) -> State:
        return (0, 0)

    def steps(self, state: State) -> list[Step]:
        left, right = state
        if left in (self.trap, END):
            return []
        return [("left", False, (left + 1, right)), ("right", False, (left, min(right + 1, 2)))]

    def broken(self, state: State) -> str | None:
        return None

    def settled(self, state: State) -> bool:
        return bool(state[0] == END)

    def canonical(self, state: State) -> State:
        return state


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
