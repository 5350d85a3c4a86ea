"""What the benchmark is described in: rows, which have cases, which have contenders that are measured in turns.

A row module makes one `ROW` of these and measures nothing when it is imported. The harness plays it round by round and
works out its lines from what each round measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from bench.harness.target import Target

# What one turn of one contender measured; the names say the unit: records_per_s, cpu_us_per_record, rss_mb, p99_ms.
Figures = Mapping[str, float]
# One curve of a plot: (x, y), each in its axis' unit.
Points = Sequence[tuple[float, float]]

DEADLINE_S: Final = 600.0
PREPARE_DEADLINE_S: Final = 1800.0


@dataclass(frozen=True, slots=True)
class Bench:
    """What a turn is given to measure with.

    Attributes:
        kafka: bootstrap servers of the round's own broker; empty where cases are only listed.
        postgres_url: the round's own Postgres; empty where cases are only listed.
        directory: a folder of this turn alone; removed after a turn that measured, kept after one that failed.
        quick: the smoke in the tests: as little as shows that it works, a second or so a turn.
        full: one of the FULL run's rounds: what only that one affords may be measured.
        say: tell the person in front of the screen, in one line.
        round: number of the round, from 1: what takes long and hardly differs is measured in a FULL run's first alone.
    """

    kafka: str
    postgres_url: str
    directory: Path
    quick: bool
    full: bool
    say: Callable[[str], None]
    round: int = 1

    @property
    def first_of_full(self) -> bool:
        """Whether this is the round of a FULL run that has the long measurements too."""
        return self.full and self.round == 1

    def size(self, quick: int, usual: int, full: int | None = None) -> int:
        """Return how many: `quick` in the smoke, `full` in a FULL run where it is given, else `usual`."""
        if self.quick:
            return quick
        return full if self.full and full is not None else usual


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody who is measured: this project, a peer, a ceiling.

    Attributes:
        name: unique in its case, the same in every case of a row.
        measure: measures one turn, in the harness' main thread, and leaves nothing running however it ends. Whatever it
            raises fails the turn, with its message as the reason.
        lacks: what it doesn't do that the registry does: no registry, no dead letters, at most once ...
        version: of what is measured, where that isn't among the harness' own versions.
        deadline_s: when a turn is broken off and failed.
    """

    name: str
    measure: Callable[[Bench], Figures]
    lacks: str = ""
    version: str = ""
    deadline_s: float = DEADLINE_S


@dataclass(frozen=True, slots=True)
class Case:
    """Contenders that do the same work and are measured by turns: A B A B ...

    Attributes:
        name: unique in its row.
        contenders: in the first round's order; each later round begins with the next one.
        turns: of each contender a round.
        prepare: run once a round before the first turn, with a folder of its own: fills topics and tables, builds
            peers. What fails is tried once more; when that fails too, every contender of the case has failed.
        prepare_deadline_s: when `prepare` is broken off and has failed.
    """

    name: str
    contenders: Sequence[Contender]
    turns: int = 1
    prepare: Callable[[Bench], None] | None = None
    prepare_deadline_s: float = PREPARE_DEADLINE_S


class WrongResultError(RuntimeError):
    """What is measured did something wrong: its turn has failed, and no second attempt takes that back."""


class NotMeasuredError(LookupError):
    """A figure that a round doesn't have.

    Attributes:
        failed: whether it was tried and failed; else it wasn't tried.
        reason: why.
    """

    def __init__(self, reason: str, *, failed: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.failed = failed


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of a row measured.

    Attributes:
        number: from 1.
        turns: the figures of each turn, by case and contender, in the order of measuring.
        failures: why a contender of a case has a turn without figures.
        broken: why the round couldn't go on, where turns are missing because of that.
    """

    number: int
    turns: Mapping[tuple[str, str], Sequence[Figures]]
    failures: Mapping[tuple[str, str], str] = field(default_factory=dict)
    broken: str = ""

    def figure(self, case: str, contender: str, name: str) -> float:
        """Return a figure: the median over the contender's turns.

        Raises:
            NotMeasuredError: a turn failed, or there is no such figure. Lines let it pass: it becomes `failed`.
        """
        if reason := self.failures.get((case, contender)):
            raise NotMeasuredError(f"{case}, {contender}: {reason}", failed=True)
        turns = self.turns.get((case, contender), ())
        if not turns and self.broken:
            raise NotMeasuredError(self.broken, failed=True)
        values = [figures[name] for figures in turns if name in figures]
        if not values:
            raise NotMeasuredError(f"{case}, {contender}: no {name}", failed=False)
        return median(values)

    def has(self, case: str, contender: str, name: str) -> bool:
        """Return whether `figure` has an answer."""
        try:
            self.figure(case, contender, name)
        except NotMeasuredError:
            return False
        return True

    def ratio(self, case: str, name: str, contender: str, to: str) -> float:
        """Return one contender's figure divided by another's in the same case.

        Raises:
            NotMeasuredError: one of them has no such figure, or the divisor is 0.
        """
        divisor = self.figure(case, to, name)
        if divisor == 0:
            raise NotMeasuredError(f"{case}, {to}: {name} is 0", failed=False)
        return self.figure(case, contender, name) / divisor


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a row's table: a figure worked out from one round.

    The table shows the median over the rounds, the least and the most, and whether the median meets the target.

    Attributes:
        text: what the figure is, in words.
        value: works it out; None where the round was never to have it (only a FULL run measures it, say).
            NotMeasuredError passes through.
        unit: of the value; empty for a ratio.
        target: what it is held to.
        aim: what it would best be; said beside the target, and never the reason for `not met`.
        why: where it is explained why target or aim is missed, and what was tried: a link as it stands in the results,
            shown when it is. Without one they say that nobody has explained it.
    """

    text: str
    value: Callable[[Round], float | None]
    unit: str = ""
    target: Target | None = None
    aim: Target | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a plot: what it shows, in which unit, and whether it is logarithmic."""

    text: str
    unit: str = ""
    logarithmic: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of a row: curves, each point the median over the rounds, with least and most.

    Attributes:
        name: of the file, without its suffix.
        title: over the plot.
        x: the axis at the bottom.
        y: the axis at the left.
        curves: works out one round's points, by the curve's name. What wasn't measured is left out (`Round.has`).
    """

    name: str
    title: str
    x: Axis
    y: Axis
    curves: Callable[[Round], Mapping[str, Points]]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the results.

    Attributes:
        number: from 1, as in `row_1.py`.
        title: of its heading.
        about: Markdown below the heading: what is measured, how, and what it means.
        cases: what is measured, in this order. Cheap, and the same whenever asked: it only describes. Nothing is
            connected to or made before `Case.prepare`.
        lines: of its table; a function where they depend on what was measured.
        plots: below the table.
        warm_up: work done once a round before the first case, which nobody measures: a broker that has just started
            takes up to a third more CPU for the same work until its code is compiled.
    """

    number: int
    title: str
    about: str
    cases: Callable[[Bench], Sequence[Case]]
    lines: Sequence[Line] | Callable[[Sequence[Round]], Sequence[Line]]
    plots: Sequence[Plot] = ()
    warm_up: Callable[[Bench], None] | None = None
