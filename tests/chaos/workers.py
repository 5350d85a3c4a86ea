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
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from queue import Empty
from typing import Any

from tests.chaos.drawing import schedule_of
from tests.chaos.report import VOID, Entry, entry_of, entry_of_nothing, whole_story
from tests.chaos.run import Interrupted, Stuck, play
from tests.chaos.stage import Stage

LOOK_S = 0.2
# A run that is void, or could not be played, gets so many tries.
TRIES = 2
JOBS = 2


@dataclass(frozen=True, slots=True)
class Plan:
    """Seeds from ``first`` on, until ``minutes`` are over or ``runs`` were played; at least one."""

    first: int
    minutes: float
    runs: int | None
    jobs: int
    commit: str
    directory: Path


@dataclass(frozen=True, slots=True)
class Played:
    """One run; ``told`` is everything to say about it when it wasn't kept, or left something behind without a fault."""

    entry: Entry
    told: str


def play_all(plan: Plan) -> Iterator[Played]:
    """Play the plan and return the runs as they end, one at least a seed; KeyboardInterrupt ends all in order."""
    context = multiprocessing.get_context("spawn")
    seeds: Any = context.Value("q", plan.first)
    results: Any = context.Queue()
    deadline = time.time() + plan.minutes * 60
    workers = [context.Process(target=_work, args=(plan, seeds, results, deadline)) for _ in range(plan.jobs)]
    for worker in workers:
        worker.start()
    told: set[int] = set()
    try:
        while any(worker.is_alive() for worker in workers) or not results.empty():
            try:
                played = results.get(timeout=LOOK_S)
            except Empty:
                continue
            told.add(played.entry.seed)
            yield played
        for seed in sorted(set(range(plan.first, seeds.value)) - told):
            why = f"seed {seed}: the process that was to play it ended without a word"
            yield Played(entry_of_nothing(schedule_of(seed), plan.commit, 0), why)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
        for worker in workers:
            worker.join()


def _work(plan: Plan, seeds: Synchronized[int], results: Queue[Played], deadline: float) -> None:
    broken_off = threading.Event()
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, lambda *_: broken_off.set())
    threading.Thread(target=_end_with_parent, args=(os.getppid(), broken_off), daemon=True).start()
    _quieten(plan.directory)
    with LastingStage() as stage:
        while (seed := _next_seed(plan, seeds, deadline)) is not None and not broken_off.is_set():
            for number in range(1, TRIES + 1):
                try:
                    played = _play(plan, stage, seed, number, broken_off)
                except Interrupted:
                    return
                results.put(played)
                if played.entry.verdict != VOID:
                    break


class LastingStage:
    """A stage that is used for run after run, until it can't be; a context manager."""

    def __init__(self) -> None:
        self._resources = ExitStack()
        self._stage: Stage | None = None

    def __enter__(self) -> LastingStage:
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.leave()

    def now(self) -> Stage:
        """Return it, started if it isn't; raises whatever keeps its servers from starting."""
        if self._stage is None:
            self._stage = self._resources.enter_context(Stage())
        return self._stage

    def leave(self) -> None:
        """End it: who knows how a run that failed has left it."""
        self._resources.close()
        self._stage = None


def _end_with_parent(parent: int, broken_off: threading.Event) -> None:
    """Break off when whoever started us is gone, however it went."""
    while os.getppid() == parent:
        time.sleep(LOOK_S)
    broken_off.set()


def _quieten(directory: Path) -> None:
    """Let what the client libraries say of servers that we take down go to a file: it would drown our own lines."""
    logging.getLogger().addHandler(logging.NullHandler())
    with (directory / f"clients-{os.getpid()}.log").open("ab") as clients:
        os.dup2(clients.fileno(), sys.stderr.fileno())


def _next_seed(plan: Plan, seeds: Synchronized[int], deadline: float) -> int | None:
    with seeds.get_lock():
        seed = seeds.value
        played = seed - plan.first
        over = played >= plan.runs if plan.runs is not None else played > 0 and time.time() > deadline
        if over:
            return None
        seeds.value = seed + 1
        return seed


def _play(plan: Plan, stage: LastingStage, seed: int, number: int, broken_off: threading.Event) -> Played:
    """Play a seed; return what came of it."""
    schedule = schedule_of(seed)
    directory = plan.directory / f"{seed}-{number}"
    began = time.monotonic()
    try:
        outcome = play(stage.now(), schedule, directory, broken_off)
    except Interrupted:
        raise
    except Exception as error:  # noqa: BLE001 - told with the run, which is void, or broken when it is stuck
        if broken_off.is_set():
            raise Interrupted from None
        stuck = isinstance(error, Stuck)
        why = f"  {error}" if stuck else traceback.format_exc()
        told = "\n".join([*schedule.lines(), why, f"  logs: {directory}"])
        stage.leave()
        return Played(entry_of_nothing(schedule, plan.commit, time.monotonic() - began, broken=stuck), told)
    entry = entry_of(outcome, plan.commit)
    if not outcome.failed and not outcome.void:
        shutil.rmtree(directory, ignore_errors=True)
        return Played(entry, "")
    return Played(entry, "\n".join(whole_story(outcome)))
