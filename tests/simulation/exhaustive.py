"""Explore every state of a small world that any order of steps reaches, breadth first: stories are the shortest.

A state is a tuple; a step leads to another one, or to a sentence where it breaks a guarantee at once. States that
differ only in which of two like processes is which count as one (`Model.canonical`).

That all fair runs end well is asked of every reachable state: may faults stop here, then the steps that are no faults
can still lead to a settled state. In a finite graph this is what strong fairness needs, a step that is possible again
and again being taken some time.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol, TypeAlias

# A tuple of numbers and tuples; each model knows which.
State: TypeAlias = Any
# What happens, whether it is a fault (or new work), and the state it leads to, or the guarantee it breaks.
Step: TypeAlias = tuple[str, bool, State]


class Model(Protocol):
    """What can be explored."""

    @property
    def name(self) -> str:
        """Return what it is called in tables, with its bounds."""

    def initial(self) -> State:
        """Return where everything begins."""

    def steps(self, state: State) -> list[Step]:
        """Return all that can happen next."""

    def broken(self, state: State) -> str | None:
        """Return the guarantee that a state breaks, None if it keeps all."""

    def settled(self, state: State) -> bool:
        """Return whether everything has ended as it must, with nothing left to do."""

    def canonical(self, state: State) -> State:
        """Return the one state that stands for all that differ in names only."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken guarantee and the shortest way to it, one sentence a step."""

    broken: str
    story: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([*(f"{number:3} {what}" for number, what in enumerate(self.story, 1)), f"  = {self.broken}"])


@dataclass(frozen=True, slots=True)
class Explored:
    """What was found; ``states`` are all there are when there is no violation.

    ``missed`` is what the model says must be reached (``reaches``) and notes as such (``reached``), and wasn't.
    """

    name: str
    states: int
    steps: int
    depth: int
    violation: Violation | None
    missed: frozenset[str] = frozenset()


def order() -> defaultdict[Any, int]:
    """Return numbers for values as they come, by which those of like processes are sorted, the same in every run."""
    return defaultdict(count().__next__)


NEVER_ENDS = "however it continues, it never ends as it must"


class TooManyStates(Exception):
    """The model has more states than allowed: tighten its bounds."""


class _Graph:
    """The states found so far, by number, and how each was reached first."""

    def __init__(self, start: State) -> None:
        self.numbers: dict[State, int] = {start: 0}
        self.states: list[State] = [start]
        self.parents: list[int] = [-1]
        self.depths: list[int] = [0]
        # Steps that are no faults, backwards.
        self.before: list[list[int]] = [[]]

    def add(self, state: State, parent: int) -> int:
        number = self.numbers[state] = len(self.states)
        self.states.append(state)
        self.parents.append(parent)
        self.depths.append(self.depths[parent] + 1)
        self.before.append([])
        return number

    def path(self, number: int) -> list[State]:
        path = []
        while number >= 0:
            path.append(self.states[number])
            number = self.parents[number]
        return path[::-1]


def explore(
    model: Model, most_states: int = 1_000_000, fair: bool = True, watch: Callable[[int], None] | None = None
) -> Explored:
    """Explore a model to the end, or to its first broken guarantee.

    Args:
        model: what to explore.
        most_states: more than these are refused.
        fair: ask also whether all fair runs end well.
        watch: told the number of states now and then.

    Raises:
        TooManyStates: the bounds are too wide.
    """
    graph = _Graph(model.canonical(model.initial()))
    taken = 0
    violation: Violation | None = None
    number = 0
    while number < len(graph.states) and violation is None:
        if number > most_states:
            raise TooManyStates(f"{model.name}: more than {most_states} states")
        if watch is not None and number % 1_000 == 0:
            watch(len(graph.states))
        steps = model.steps(graph.states[number])
        taken += len(steps)
        violation = _follow(model, graph, number, steps)
        number += 1
    if violation is None and fair:
        violation = _unsettled(model, graph)
    missed = frozenset(getattr(model, "reaches", ())) - getattr(model, "reached", set())
    return Explored(model.name, len(graph.states), taken, max(graph.depths), violation, missed)


def _follow(model: Model, graph: _Graph, number: int, steps: list[Step]) -> Violation | None:
    numbers, canonical, broken = graph.numbers, model.canonical, model.broken
    for _, is_fault, target in steps:
        if type(target) is str:
            return _told(model, graph.path(number), target)
        state = canonical(target)
        found = numbers.get(state)
        if found is None:
            found = graph.add(state, number)
            problem = broken(state)
            if problem is not None:
                return _told(model, graph.path(found), problem)
        if not is_fault:
            graph.before[found].append(number)
    return None


def _unsettled(model: Model, graph: _Graph) -> Violation | None:
    """Find the first state from which no settled one can be reached without faults."""
    settles = bytearray(len(graph.states))
    pending = deque(number for number, state in enumerate(graph.states) if model.settled(state))
    for number in pending:
        settles[number] = 1
    while pending:
        for earlier in graph.before[pending.popleft()]:
            if not settles[earlier]:
                settles[earlier] = 1
                pending.append(earlier)
    stuck = settles.find(0)
    if stuck < 0:
        return None
    return _told(model, graph.path(stuck), NEVER_ENDS)


def _told(model: Model, path: list[State], broken: str) -> Violation:
    """Describe a path in names that stay the same, since canonical states may have swapped them."""
    story = []
    state = model.initial()
    for target in path[1:]:
        for what, _, following in model.steps(state):
            if type(following) is not str and model.canonical(following) == target:
                story.append(what)
                state = following
                break
        else:
            raise AssertionError(f"{model.name}: the steps are not the same under another name: {state}")
    # The guarantee is broken in this state, or else by the step that says so.
    last = next(((what, said) for what, _, said in model.steps(state) if type(said) is str), None)
    if last is not None and broken != NEVER_ENDS and model.broken(state) is None:
        return Violation(str(last[1]), (*story, last[0]))
    return Violation(broken, tuple(story))
