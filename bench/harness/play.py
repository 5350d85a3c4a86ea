"""Plays a round of a row: its cases one after the other, a case's contenders by turns."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final

from bench.harness.row import ROOT, Bench, Case, Contender, Figures, Row, WrongResultError

ATTEMPTS: Final = 2
PREPARE_DEADLINE_S: Final = 1800.0
REASON_CHARS: Final = 300


class TurnDeadlineError(BaseException):
    """A turn took too long. Not an Exception, so that no handler in between takes it for its own."""


@dataclass(frozen=True, slots=True)
class Turn:
    """How a turn ended: with figures, or with the reason why there are none."""

    case: str
    contender: str
    number: int
    figures: Figures
    failure: str = ""


def play(row: Row, bench: Bench, keep: Callable[[Turn], None]) -> list[str]:
    """Play a round and hand on each turn as soon as it has ended; return what failed at both attempts."""
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
    reason = ""
    for attempt in range(1, ATTEMPTS + 1):
        folder = turn_folder(bench, case.name, f"{contender.name} {number} {attempt}")
        try:
            figures = measured(contender.measure, replace(bench, directory=folder), contender.deadline_s)
            return Turn(case.name, contender.name, number, figures)
        except (Exception, TurnDeadlineError) as error:  # noqa: BLE001 - whatever it is, it fails this turn alone
            reason = f"{type(error).__name__}: {error}"
            (folder / "failure.txt").write_text(f"{reason}\n\n{traceback.format_exc()}", "utf-8")
            bench.say(f"failed: {reason}")
            if isinstance(error, WrongResultError):
                break
    return Turn(case.name, contender.name, number, {}, _in_short(reason))


def measured(measure: Callable[[Bench], Figures], bench: Bench, deadline_s: float) -> Figures:
    """Measure one turn within its deadline, and remove its folder when it has succeeded."""
    with time_limit(deadline_s):
        figures = measure(bench)
    shutil.rmtree(bench.directory, ignore_errors=True)
    return figures


def _prepare(name: str, prepare: Callable[[Bench], None], bench: Bench) -> None:
    bench.say(f"{name}: preparing")
    with time_limit(PREPARE_DEADLINE_S):
        prepare(replace(bench, directory=turn_folder(bench, name, "prepare")))


def turn_folder(bench: Bench, *parts: str) -> Path:
    """Make the folder of a turn; Spark doesn't find a folder whose name has a comma."""
    folder = bench.directory.joinpath(*(re.sub(r"[^A-Za-z0-9.]+", "-", part) for part in parts))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TurnDeadlineError in the block once it takes longer; by SIGALRM, so in the main thread only."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TurnDeadlineError(f"the turn took longer than {seconds:g} s and was ended")

    handler = signal.signal(signal.SIGALRM, ring)
    left_s, interval_s = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left_s, interval_s)
        signal.signal(signal.SIGALRM, handler)


def _in_short(reason: str) -> str:
    """Return a reason as the data keeps it: without the folders of this checkout and its owner."""
    text = " ".join(reason.split())
    for path, name in ((str(ROOT), "."), (tempfile.gettempdir(), "$TMPDIR"), (str(Path.home()), "~")):
        text = text.replace(path, name) if path != "/" else text
    return text[:REASON_CHARS]
