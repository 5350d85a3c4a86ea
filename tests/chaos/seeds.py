"""Plays random runs, some at the same time, each on servers of its own."""

from __future__ import annotations

import math
import shutil
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from itertools import count, islice, takewhile
from pathlib import Path
from typing import Final

from tests.chaos.report import BROKEN, KEPT, VOID, Run, run_of
from tests.chaos.run import Interrupted, Stuck, play
from tests.chaos.schedule import schedule_of
from tests.chaos.stage import Stage

JOBS: Final = 2
# A run that is void is played again, up to this often in all.
PLAYED_AT_MOST: Final = 2


def play_seeds(first: int, minutes: float, runs: int | None, jobs: int, folder: Path) -> Iterator[Run]:
    """Play seeds from ``first`` on until ``minutes`` are over, or ``runs`` of them; yield the last run of each.

    An exception in the caller, as KeyboardInterrupt, interrupts all of them.
    """
    over_s, interrupted = time.monotonic() + 60 * minutes, threading.Event()
    last = math.inf if runs is None else first + runs - 1
    seeds = takewhile(lambda seed: seed <= last, count(first))
    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(play_seed, seed, folder, interrupted) for seed in islice(seeds, jobs)}
        try:
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for each in ended:
                    yield each.result()
                    if runs is not None or time.monotonic() < over_s:
                        running |= {pool.submit(play_seed, seed, folder, interrupted) for seed in islice(seeds, 1)}
        finally:
            interrupted.set()


def play_seed(seed: int, folder: Path, interrupted: threading.Event) -> Run:
    """Play a seed, once more if that run is void, and return the last run; print each, and keep its logs unless kept.

    Raises:
        Interrupted: ``interrupted`` was set.
    """
    for number in range(1, PLAYED_AT_MOST + 1):
        directory = folder / f"{seed}-{number}"
        run = _play_once(seed, directory, interrupted)
        print(run, *filter(None, [run.story]), sep="\n", flush=True)
        if run.verdict == KEPT:
            shutil.rmtree(directory, ignore_errors=True)
        if run.verdict != VOID:
            break
    return run


def _play_once(seed: int, directory: Path, interrupted: threading.Event) -> Run:
    began_s, schedule = time.monotonic(), schedule_of(seed)
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
        return Run(seed, BROKEN if stuck else VOID, time.monotonic() - began_s, found=found, story=story)
