"""Plays runs at the same time: a process each, with a stack of its own."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from queue import Empty
from typing import Any, NamedTuple

from tests.chaos.report import VOID, Entry, entry_of, entry_of_nothing, whole_story
from tests.chaos.run import Interrupted, Stuck, play
from tests.chaos.schedule import schedule_of
from tests.chaos.stage import Stage

POLL_S = 0.2
# A run that is void, or could not be played, is played again, up to this often in all.
PLAYED_AT_MOST = 2
JOBS = 2


class Plan(NamedTuple):
    """Seeds from ``first`` on, until ``minutes`` are over or ``runs`` were played; at least one."""

    first: int
    minutes: float
    runs: int | None
    jobs: int
    commit: str
    directory: Path


class Run(NamedTuple):
    """One run; ``story`` is its report, empty if it was kept."""

    entry: Entry
    story: str


def play_all(plan: Plan) -> Iterator[Run]:
    """Play the plan and return the runs as they end, at least one per seed; KeyboardInterrupt ends all in order."""
    context = multiprocessing.get_context("spawn")
    seeds: Any = context.Value("q", plan.first)
    results: Any = context.Queue()
    deadline = time.time() + plan.minutes * 60
    workers = [context.Process(target=_work, args=(plan, seeds, results, deadline)) for _ in range(plan.jobs)]
    for worker in workers:
        worker.start()
    ended: set[int] = set()
    try:
        while any(worker.is_alive() for worker in workers) or not results.empty():
            try:
                run = results.get(timeout=POLL_S)
            except Empty:
                continue
            ended.add(run.entry.seed)
            yield run
        for seed in sorted(set(range(plan.first, seeds.value)) - ended):
            why = f"seed {seed}: the process that was to play it ended without a report"
            yield Run(entry_of_nothing(schedule_of(seed), plan.commit, 0), why)
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()


def _work(plan: Plan, seeds: Synchronized[int], results: Queue[Run], deadline: float) -> None:
    interrupted = threading.Event()
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, lambda *_: interrupted.set())
    threading.Thread(target=_end_with_parent, args=(os.getppid(), interrupted), daemon=True).start()
    # The client libraries log every server that a fault stops: in a file, or it would hide our own lines.
    logging.getLogger().addHandler(logging.NullHandler())
    with (plan.directory / f"clients-{os.getpid()}.log").open("ab") as clients:
        os.dup2(clients.fileno(), sys.stderr.fileno())
    with ExitStack() as stages:
        stage: Stage | None = None
        while (seed := _next_seed(plan, seeds, deadline)) is not None and not interrupted.is_set():
            for number in range(1, PLAYED_AT_MOST + 1):
                directory, began = plan.directory / f"{seed}-{number}", time.monotonic()
                try:
                    stage = stage or stages.enter_context(Stage())
                    run = _play(plan, stage, seed, directory, interrupted)
                except Interrupted:
                    return
                except Exception as error:  # noqa: BLE001 - reported with the run, which is void, or broken if stuck
                    if interrupted.is_set():
                        return
                    run = _unplayed(plan, seed, directory, error, time.monotonic() - began)
                    # A run that failed may have left the stage in any state.
                    stages.close()
                    stage = None
                results.put(run)
                if run.entry.verdict != VOID:
                    break


def _end_with_parent(parent: int, interrupted: threading.Event) -> None:
    """Interrupt when the parent process is gone, however it ended."""
    while os.getppid() == parent:
        time.sleep(POLL_S)
    interrupted.set()


def _next_seed(plan: Plan, seeds: Synchronized[int], deadline: float) -> int | None:
    with seeds.get_lock():
        seed = seeds.value
        played = seed - plan.first
        over = played >= plan.runs if plan.runs is not None else played > 0 and time.time() > deadline
        if over:
            return None
        seeds.value = seed + 1
        return seed


def _play(plan: Plan, stage: Stage, seed: int, directory: Path, interrupted: threading.Event) -> Run:
    outcome = play(stage, schedule_of(seed), directory, interrupted)
    entry = entry_of(outcome, plan.commit)
    if outcome.failed or outcome.void:
        return Run(entry, "\n".join(whole_story(outcome)))
    shutil.rmtree(directory, ignore_errors=True)
    return Run(entry, "")


def _unplayed(plan: Plan, seed: int, directory: Path, error: Exception, seconds: float) -> Run:
    stuck, schedule = isinstance(error, Stuck), schedule_of(seed)
    why = f"  {error}" if stuck else "".join(traceback.format_exception(error))
    entry = entry_of_nothing(schedule, plan.commit, seconds, broken=stuck)
    return Run(entry, "\n".join([*schedule.lines(), why, f"  logs: {directory}"]))
