"""Measurements that were never made, for tests of what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.harness.measurement import Origin, RoundEnd, Stamp, Turn
from bench.harness.row import Bench, Case, Contender, Figures, Line, Row

HERE = Origin("abc123", "a machine", full=True)


def stamp(run: str = "run-1", origin: Origin = HERE, date: str = "2026-11-21T02:20:00+00:00") -> Stamp:
    return Stamp(run, origin, {"Python": "3.11.7", "Java": "17.0.15"}, date)


def turn(
    contender: str = "registry",
    figures: Mapping[str, float] | None = None,
    *,
    case: str = "no-op",
    row: int = 2,
    number: int = 1,
    turn: int = 1,
    attempt: int = 1,
    failure: str = "",
    lacks: str = "",
    version: str = "",
    stamped: Stamp | None = None,
) -> Turn:
    given = {} if failure else figures or {"records_per_s": 40_000.0}
    return Turn(stamped or stamp(), row, number, case, contender, turn, attempt, given, failure, 7.5, lacks, version)


def end(
    number: int = 1,
    *,
    row: int = 2,
    failures: Sequence[str] = (),
    broken: str = "",
    noise: str = "",
    seconds: float = 90.0,
    stamped: Stamp | None = None,
) -> RoundEnd:
    return RoundEnd(stamped or stamp(), row, number, seconds, tuple(failures), broken, noise)


def bench(directory: Path, say: Callable[[str], None] = lambda _: None) -> Bench:
    return Bench("kafka:9092", "postgresql://postgres/", directory, quick=True, full=False, say=say)


def contender(name: str, measure: Callable[[Bench], Figures] | None = None, deadline_s: float = 60.0) -> Contender:
    return Contender(name, measure or (lambda _: {"records_per_s": 1.0}), deadline_s=deadline_s)


def row(cases: Sequence[Case], lines: Sequence[Line] = (), number: int = 2) -> Row:
    return Row(number, "Processor ceiling", "The full pattern.", lambda _: cases, lines)
