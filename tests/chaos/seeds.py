"""Plays random runs, some at the same time, and says what they come to."""

from __future__ import annotations

import math
import shutil
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Final, NamedTuple

from tests.chaos.run import Interrupted, Outcome, Stuck, play
from tests.chaos.schedule import Schedule, schedule_of
from tests.chaos.stage import Stage

KEPT, BROKEN, VOID = "kept", "broken", "void"
STORIES: Final = 3
JOBS: Final = 2
# A run that is void is played again, up to this often in all.
PLAYED_AT_MOST: Final = 2
_FIGURES: Final = ("records", "done", "dead_lettered", "expired", "redelivered")
_NO_FIGURES: Final[Mapping[str, int]] = dict.fromkeys(_FIGURES, 0)


class Run(NamedTuple):
    """What a run came to: ``found`` counts what was broken, by rule; ``story`` is empty if the run was kept."""

    seed: int
    verdict: str
    seconds: float
    faults: Sequence[str] = ()
    figures: Mapping[str, int] = _NO_FIGURES
    found: Mapping[str, int] = {}
    story: str = ""

    def __str__(self) -> str:
        figures = ", ".join(f"{self.figures[name]} {name}" for name in _FIGURES)
        found = ", ".join(f"{name} {count}" for name, count in sorted(self.found.items())) or "nothing broken"
        return f"seed {self.seed}: {self.verdict} in {self.seconds:.0f} s; {figures}; {found}; {'; '.join(self.faults)}"


def run_of(outcome: Outcome) -> Run:
    """Return what a run came to that was played to its end."""
    found = Counter(outcome.verdict.counts) + Counter(exit=len(outcome.endings), unsettled=bool(outcome.unsettled))
    verdict = BROKEN if found else VOID if outcome.void else KEPT
    story = "" if verdict == KEPT else "\n".join(_whole_story(outcome))
    faults = [f"{fault.name} {fault.target}" for fault in outcome.faults]
    return Run(outcome.schedule.seed, verdict, outcome.seconds, faults, outcome.verdict.figures, found, story)


def _whole_story(outcome: Outcome) -> Iterator[str]:
    """Yield all that helps to understand a run: its schedule, what happened, what was broken, how to play it again."""
    yield str(outcome.schedule)
    for fault in outcome.faults:
        lasted_s = (fault.ended_ms - fault.began_ms) / 1000
        yield f"  {fault.name} of {fault.target}, {lasted_s:.1f} s: {fault.happened or 'DID NOT HAPPEN'}"
    if outcome.void:
        yield f"  void: {outcome.void}"
    if outcome.unsettled:
        yield f"  not settled in time: {outcome.unsettled}"
    yield from (f"  {ending}" for ending in outcome.endings)
    yield from outcome.verdict.stories(STORIES)
    yield f"  logs: {outcome.directory}"
    yield f"  again: make chaos SEED={outcome.schedule.seed} RUNS=1 JOBS=1"


def summary(runs: Sequence[Run]) -> str:
    """Return the sum over the last run of each seed: what was broken and exported, and which seeds show nothing."""
    judged = [run for run in runs if run.verdict != VOID]
    exported = [run.figures["expired"] + run.figures["redelivered"] for run in judged]
    found = sum((Counter(run.found) for run in judged), Counter[str]())
    seeds = ", ".join(str(run.seed) for run in runs if run.verdict == VOID)
    parts = [
        f"{len(judged)} runs, {sum(len(run.faults) for run in judged)} faults, "
        f"{sum(run.figures['records'] for run in judged)} records",
        ", ".join(f"{name} {count}" for name, count in sorted(found.items())) or "nothing broken",
        f"{sum(map(bool, exported))} of the runs exported {sum(exported)} records",
        *([f"NO CONCLUSIVE RUN of seeds {seeds}"] if seeds else []),
    ]
    return "; ".join(parts)


def play_seeds(first: int, minutes: float, runs: int | None, jobs: int, folder: Path) -> Iterator[Run]:
    """Play seeds from ``first`` on until ``minutes`` are over, or ``runs`` of them; yield the last run of each.

    An exception in the caller, as KeyboardInterrupt, interrupts all of them.
    """
    over_s, interrupted = time.monotonic() + 60 * minutes, threading.Event()
    last = math.inf if runs is None else first + runs - 1
    drawn = map(schedule_of, takewhile(lambda seed: seed <= last, count(first)))
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(play_schedule, one, folder, interrupted) for one in islice(drawn, jobs)}
        try:
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for each in ended:
                    yield each.result()
                    if runs is not None or time.monotonic() < over_s:
                        running |= {pool.submit(play_schedule, one, folder, interrupted) for one in islice(drawn, 1)}
        finally:
            interrupted.set()


def play_schedule(schedule: Schedule, folder: Path, interrupted: threading.Event) -> Run:
    """Play a schedule, again if that run is void, and return the last run; print each, and keep its logs unless kept.

    Raises:
        Interrupted: ``interrupted`` was set.
    """
    for number in range(1, PLAYED_AT_MOST + 1):
        directory = folder / f"{schedule.seed}-{number}"
        run = _play_once(schedule, directory, interrupted)
        print(run, *filter(None, [run.story]), sep="\n", flush=True)
        if run.verdict == KEPT:
            shutil.rmtree(directory, ignore_errors=True)
        if run.verdict != VOID:
            break
    return run


def _play_once(schedule: Schedule, directory: Path, interrupted: threading.Event) -> Run:
    began_s = time.monotonic()
    try:
        with Stage() as stage:
            return run_of(play(stage, schedule, directory, interrupted))
    except Exception as error:
        if interrupted.is_set():
            raise Interrupted from error
        # It is void: a fault, the load or an observer failed. But it is broken if the product is the cause.
        stuck = isinstance(error, Stuck)
        why = f"  {error}" if stuck else "".join(traceback.format_exception(error))
        story = "\n".join([str(schedule), why, f"  logs: {directory}"])
        found = {"stuck": 1} if stuck else {}
        return Run(schedule.seed, BROKEN if stuck else VOID, time.monotonic() - began_s, found=found, story=story)
