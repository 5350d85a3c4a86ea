"""Plays a round of a row: its cases one after the other, a case's contenders by turns."""

from __future__ import annotations

import re
import shutil
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from bench.harness.deadline import TurnDeadlineError, time_limit
from bench.harness.measurement import Stamp, Turn, checked_figures
from bench.harness.process import ProcessError
from bench.harness.row import PREPARE_DEADLINE_S, Bench, Case, Contender, Figures, WrongResultError

ATTEMPTS: Final = 2
AGAIN: Final = ", once more"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt at a turn ended: with figures, or with the reason why not."""

    case: str
    contender: Contender
    turn: int
    attempt: int
    figures: Figures
    failure: str
    seconds: float

    def as_turn(self, stamp: Stamp, row: int, number: int) -> Turn:
        """Return it as it is kept, of a round of a row."""
        return Turn(
            stamp=stamp,
            row=row,
            round=number,
            case=self.case,
            contender=self.contender.name,
            turn=self.turn,
            attempt=self.attempt,
            figures=self.figures,
            failure=self.failure,
            seconds=self.seconds,
            lacks=self.contender.lacks,
            version=self.contender.version,
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """Figures, or the reason why there are none; how long it took, s; and whether to try it once more."""

    figures: Figures
    reason: str
    seconds: float
    again: bool


class BrokenRoundError(RuntimeError):
    """The round can't go on; the message says why."""


def turned(contenders: Sequence[Contender], number: int) -> list[Contender]:
    """Return a round's order: each round begins with the next contender, so that none always has the best place."""
    first = (number - 1) % len(contenders) if contenders else 0
    return [*contenders[first:], *contenders[:first]]


class RoundPlay:
    """One round of a row on servers that run."""

    def __init__(
        self,
        bench: Bench,
        number: int,
        keep: Callable[[Outcome], None],
        *,
        starting: Callable[[str], None] = lambda _: None,
        broken: Callable[[], str] = lambda: "",
    ) -> None:
        """Describe it.

        Args:
            bench: of the round; each turn gets it with a folder of its own below this one's.
            number: of the round, from 1.
            keep: takes every attempt as soon as it has ended.
            starting: told in words what begins now.
            broken: says, after a failure, why nothing more can succeed; empty when it can.
        """
        self._bench = bench
        self._number = number
        self._keep = keep
        self._starting = starting
        self._broken = broken
        self.failures: list[str] = []

    def play(self, cases: Sequence[Case], warm_up: Callable[[Bench], None] | None = None) -> None:
        """Play all cases; `failures` says afterwards what failed for good.

        Args:
            cases: in their order.
            warm_up: done first, and not measured.

        Raises:
            BrokenRoundError: it can't go on, or begins with a broker that isn't warm.
            ValueError: two cases, or two contenders of a case, have the same name.
        """
        _require_names_of_their_own(cases)
        if warm_up is not None and (reason := self._done("warming up", "warm-up", warm_up, PREPARE_DEADLINE_S)):
            raise BrokenRoundError(f"warming up failed: {reason}")
        for case in cases:
            self._play_case(case)

    def _play_case(self, case: Case) -> None:
        order = turned(case.contenders, self._number)
        if case.prepare is not None and (reason := self._prepared(case, case.prepare)):
            reason = f"preparing it failed: {reason}"
            self.failures.append(f"{case.name}: {reason}")
            for contender in order:
                self._keep(Outcome(case.name, contender, 1, ATTEMPTS, {}, reason, 0.0))
            return
        failed: set[str] = set()
        for turn in range(1, case.turns + 1):
            for contender in order:
                if contender.name not in failed and not self._measured(case, contender, turn):
                    failed.add(contender.name)  # its other turns couldn't mend this one

    def _prepared(self, case: Case, prepare: Callable[[Bench], None]) -> str:
        return self._done(f"{case.name}: preparing", case.name, prepare, case.prepare_deadline_s)

    def _done(self, what: str, case: str, work: Callable[[Bench], None], deadline_s: float) -> str:
        """Do what isn't measured; return why it failed, twice, or an empty text."""

        def without_figures(bench: Bench) -> Figures:
            work(bench)
            return {}

        reason = ""
        self._starting(what)
        for number in range(1, ATTEMPTS + 1):
            attempt = self._attempt(self._folder(case, "prepare", number), without_figures, deadline_s, keep=True)
            reason = attempt.reason
            if not reason:
                return ""
            self._bench.say(f"{what} failed: {reason}")
            self._require_going_on()
        return reason

    def _measured(self, case: Case, contender: Contender, turn: int) -> bool:
        """Measure one turn, twice where it fails; return whether there are figures."""
        reason = ""
        for number in range(1, ATTEMPTS + 1):
            self._starting(f"{case.name}: {contender.name}, turn {turn} of {case.turns}{AGAIN if number > 1 else ''}")
            folder = self._folder(case.name, f"{contender.name} {turn}", number)
            attempt = self._attempt(
                folder, lambda bench: checked_figures(contender.measure(bench)), contender.deadline_s
            )
            reason = attempt.reason
            self._keep(Outcome(case.name, contender, turn, number, attempt.figures, reason, attempt.seconds))
            if not reason:
                return True
            self._require_going_on()
            if not attempt.again:
                break
        self.failures.append(f"{case.name}, {contender.name}: {reason}")
        return False

    def _attempt(
        self, folder: Path, measure: Callable[[Bench], Figures], deadline_s: float, *, keep: bool = False
    ) -> Attempt:
        folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        figures: Figures = {}
        reason = where = ""
        again = True
        try:
            with time_limit(deadline_s):
                figures = measure(replace(self._bench, directory=folder))
        except TurnDeadlineError as error:
            reason = f"it {error} and was broken off"
        except ProcessError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it fails this turn; the others go on
            reason = f"{type(error).__name__}: {error}"
            where = traceback.format_exc()
            again = not isinstance(error, WrongResultError)
        if reason:
            (folder / "failure.txt").write_text(f"{reason}\n\n{where}", "utf-8")
        elif not keep:
            shutil.rmtree(folder, ignore_errors=True)
        return Attempt(figures, reason, time.monotonic() - began, again)

    def _folder(self, case: str, part: str, attempt: int) -> Path:
        again = " again" if attempt > 1 else ""
        return self._bench.directory / _file_name(case) / _file_name(f"{part}{again}")

    def _require_going_on(self) -> None:
        if reason := self._broken():
            raise BrokenRoundError(reason)


def _require_names_of_their_own(cases: Sequence[Case]) -> None:
    names = [(case.name, contender.name) for case in cases for contender in case.contenders]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"saw {name[0]}, {name[1]} twice, expected a name of its own for each case and contender")


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text).strip("-") or "-"
