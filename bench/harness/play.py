"""Plays a round of a row: its cases one after the other, a case's contenders by turns."""

from __future__ import annotations

import re
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bench.harness.row import ROOT, Bench, Case, Contender, Figures, Row

REASON_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Turn:
    """How a turn ended: with figures, or with the reason why there are none."""

    case: str
    contender: str
    number: int
    figures: Figures
    failure: str = ""


def play(row: Row, bench: Bench, keep: Callable[[Turn], None]) -> list[str]:
    """Play a round and hand on each turn as soon as it has ended; return what failed."""
    failures: list[str] = []
    if row.warm_up is not None:
        _prepare("warm-up", row.warm_up, bench)
    for case in row.cases(bench):
        _prepare(case.name, case.prepare, bench)
        for turn in _turns(case, bench):
            keep(turn)
            failures += [f"{case.name}, {turn.contender}: {turn.failure}"] if turn.failure else []
    return failures


def _turns(case: Case, bench: Bench) -> Iterator[Turn]:
    """Measure a case by turns: each round begins with the next contender, so that none always has the best place."""
    first = (bench.round - 1) % len(case.contenders)
    left = [*case.contenders[first:], *case.contenders[:first]]
    for number in range(1, case.turns + 1):
        for contender in list(left):
            bench.say(f"{case.name}: {contender.name}, turn {number} of {case.turns}")
            turn = _turn(case, contender, number, bench)
            if turn.failure:
                left.remove(contender)
            yield turn


def _turn(case: Case, contender: Contender, number: int, bench: Bench) -> Turn:
    folder = turn_folder(bench, case.name, f"{contender.name} {number}")
    try:
        figures = measured(contender.measure, replace(bench, directory=folder))
        return Turn(case.name, contender.name, number, figures)
    except Exception as error:  # noqa: BLE001 - whatever it is, it fails this turn alone
        reason = f"{type(error).__name__}: {error}"
        (folder / "failure.txt").write_text(f"{reason}\n\n{traceback.format_exc()}", "utf-8")
        return Turn(case.name, contender.name, number, {}, _in_short(reason))


def measured(measure: Callable[[Bench], Figures], bench: Bench) -> Figures:
    """Measure one turn, and remove its folder when it has succeeded."""
    figures = measure(bench)
    shutil.rmtree(bench.directory, ignore_errors=True)
    return figures


def _prepare(name: str, prepare: Callable[[Bench], None], bench: Bench) -> None:
    bench.say(f"{name}: preparing")
    prepare(replace(bench, directory=turn_folder(bench, name, "prepare")))


def turn_folder(bench: Bench, *parts: str) -> Path:
    """Make the folder of a turn; Spark doesn't find a folder whose name has a comma."""
    folder = bench.directory.joinpath(*(re.sub(r"[^A-Za-z0-9.]+", "-", part) for part in parts))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _in_short(reason: str) -> str:
    """Return a reason as the data keeps it: without the folders of this checkout and its owner."""
    text = " ".join(reason.split())
    for path, name in ((str(ROOT), "."), (tempfile.gettempdir(), "$TMPDIR"), (str(Path.home()), "~")):
        text = text.replace(path, name) if path != "/" else text
    return text[:REASON_CHARS]
