"""What the benchmark is described in: a row has cases, and a case has contenders that are measured by turns.

A row module makes one `ROW` of these and measures nothing when it is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).parents[2]

# What one turn measured; the names say the unit: records_per_s, cpu_us_per_record, rss_mb, p99_ms.
Figures = Mapping[str, float]
# Case, contender, name of the figure.
Place = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout of the product: its name in the results, and its `waitreg`."""

    name: str
    waitreg: Path

    @staticmethod
    def at(root: Path) -> Checkout:
        """Return the checkout in a folder that has an environment of its own in `.venv`."""
        waitreg = root.resolve() / ".venv" / "bin" / "waitreg"
        if not waitreg.is_file():
            raise FileNotFoundError(f"{waitreg} is missing: run `make setup` in {root}")
        return Checkout(root.resolve().name, waitreg)


HERE: Final = Checkout("this checkout", Path(sys.executable).with_name("waitreg"))


def say_at_once(text: str) -> None:
    """Print a line for the person in front of the screen."""
    print(text, flush=True)


@dataclass(frozen=True, slots=True)
class Bench:
    """What a turn is given to measure with: servers of the round's own, and a folder of the turn's own.

    `quick` is the smoke in the tests, which is as small as it gets; `product` is whose `waitreg` is measured.
    """

    kafka: str
    postgres_url: str
    directory: Path
    quick: bool = False
    full: bool = False
    say: Callable[[str], None] = say_at_once
    round: int = 1
    product: Checkout = HERE

    @property
    def first_of_full(self) -> bool:
        """Whether this round has the long measurements too, which hardly differ from round to round."""
        return self.full and self.round == 1

    def size(self, quick: int, usual: int, full: int | None = None) -> int:
        """Return `quick` in the smoke, `full` in a FULL run where it is given, else `usual`."""
        if self.quick:
            return quick
        return full if self.full and full is not None else usual


@dataclass(frozen=True, slots=True)
class Contender:
    """What is measured: this project, a peer, a ceiling.

    `measure` measures one turn and leaves nothing running, however it ends; what it raises fails the turn.
    """

    name: str
    measure: Callable[[Bench], Figures]


@dataclass(frozen=True, slots=True)
class Case:
    """Contenders that do the same work: each has `turns` turns per round; `prepare` runs before the first one."""

    name: str
    contenders: Sequence[Contender]
    turns: int = 1
    prepare: Callable[[Bench], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Pair:
    """Work that two checkouts are compared by: of `gains` more is better, of `costs` less."""

    name: str
    measure: Callable[[Bench], Figures]
    gains: Sequence[str] = ()
    costs: Sequence[str] = ()
    prepare: Callable[[Bench], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Round:
    """What one round of a row measured: figures of each turn, and reasons of failures, by case and contender."""

    number: int
    turns: dict[tuple[str, str], list[Figures]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def figure(self, place: Place) -> float | None:
        """Return a figure, the median over the contender's turns; None where it wasn't measured."""
        values = [figures[place[2]] for figures in self.turns.get(place[:2], ()) if place[2] in figures]
        return median(values) if values else None


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a row's table, and the bound that its median is held to.

    It is a figure, its ratio `to` another one, or by how much it is `above` another one.

    `factor` makes the unit of the table of the figure's own; `why` links to where a missed target is explained.
    """

    text: str
    place: Place
    unit: str = ""
    to: Place | None = None
    above: Place | None = None
    factor: float = 1.0
    least: float | None = None
    most: float | None = None
    why: str = ""

    def value(self, round_: Round) -> float | None:
        """Return its value in a round."""
        value, divisor = round_.figure(self.place), round_.figure(self.to) if self.to else 1.0
        less = round_.figure(self.above) if self.above else 0.0
        return self.factor * (value - less) / divisor if value is not None and less is not None and divisor else None

    def failure(self, round_: Round) -> str | None:
        """Return why a contender that it is about failed in a round."""
        places = [place for place in (self.place, self.to, self.above) if place]
        return next((round_.failures[place[:2]] for place in places if place[:2] in round_.failures), None)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the results; `cases` only describes: nothing is connected to or made before `Case.prepare`.

    `warm_up` is unmeasured work before the first case, since a broker that has just started takes a third more CPU;
    `pairs` are what `--against` compares.
    """

    number: int
    title: str
    cases: Callable[[Bench], Sequence[Case]]
    lines: Sequence[Line]
    warm_up: Callable[[Bench], None] | None = None
    pairs: Callable[[Bench], Sequence[Pair]] = lambda _: ()
