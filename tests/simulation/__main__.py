"""``python -m tests.simulation [--seeds N] [--first N] [--jobs N]``: play seeds; ``--seed N``: tell one's story.

With ``--exhaustive [--jobs N]``, try every order of steps in the small worlds instead, then without each safeguard.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.pool import Pool

from tests.simulation.exhaustive import Explored
from tests.simulation.processor_worlds import LARGE_WORLDS
from tests.simulation.processor_worlds import WORLDS as PROCESSOR_WORLDS
from tests.simulation.removal_worlds import in_worlds, safeguard_row, world_without
from tests.simulation.seeds import breaches, broken, chunks, repeat, shortened
from tests.simulation.small_worlds import WORLDS, explored, world_row
from tests.support.fresh_seed import first_seed

ALL_WORLDS = (*WORLDS, *PROCESSOR_WORLDS, *LARGE_WORLDS)
PROGRESS_S = 5.0


def main(arguments: list[str]) -> int:
    """Play the seeds; 1 if one of them breaks anything."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, help="the first of them; else it follows from the commit's hash")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes play seeds or explore worlds")
    parser.add_argument(
        "--seed", type=int, help="this one only, with its story and a shorter one if it breaks anything"
    )
    parser.add_argument("--exhaustive", action="store_true", help="every order of steps in the small worlds instead")
    parser.add_argument(
        "--stories", action="store_true", help="with --exhaustive: how each removed safeguard is missed"
    )
    options = parser.parse_args(arguments)
    if options.exhaustive:
        return 0 if _explore(options.stories, options.jobs) else 1
    if options.seed is not None:
        return 0 if _tell(options.seed) else 1
    first = first_seed() if options.first is None else options.first
    return 0 if _play(first, options.seeds, options.jobs) else 1


def _play(first: int, count: int, jobs: int) -> bool:
    """Play seeds, print how far it is and what breaks; return whether none breaks anything."""
    print(f"{count:,} seeds from {first} (again: --first {first})", flush=True)
    began_s = said_s = time.monotonic()
    played = wrong = 0
    with _pool(jobs) as pool:
        for seeds, found in pool.imap_unordered(breaches, chunks(first, count)):
            played += seeds
            wrong += len(found)
            for each in found:
                print(f"seed {each.seed} breaks a guarantee: {each.what}\n  {repeat(each.seed)}", flush=True)
            if time.monotonic() - said_s > PROGRESS_S:
                said_s = time.monotonic()
                print(f"{played:,} of {count:,} seeds, {said_s - began_s:.0f} s, {wrong} broken", flush=True)
    print(f"{count:,} seeds from {first}, {time.monotonic() - began_s:.0f} s: {wrong or 'none'} broke a guarantee")
    return not wrong


def _explore(stories: bool, jobs: int) -> bool:
    """Print the tables of docs/simulation.md; return whether all is as it must be."""
    states = wrong = 0
    with _pool(jobs) as pool:
        for found in pool.imap(_with_all, range(len(ALL_WORLDS))):
            print(world_row(found), flush=True)
            states += found.states
            if found.violation is not None:
                wrong += 1
                print(found.violation)
        print(f"{states:,} states, {wrong} violations\n")
        safeguards = in_worlds()
        for safeguard, found in zip(safeguards, pool.imap(_without, range(len(safeguards))), strict=True):
            print(safeguard_row(safeguard, found), flush=True)
            wrong += not safeguard.breaks_as_said(found.violation.broken if found.violation else "")
            if stories and found.violation is not None:
                print(found.violation)
    return not wrong


def _pool(jobs: int) -> Pool:
    # A run makes much, and nearly nothing of it stays.
    return get_context().Pool(jobs, gc.set_threshold, (200_000, 20, 20))


def _with_all(number: int) -> Explored:
    return explored(ALL_WORLDS[number], watch=_watch())


def _without(number: int) -> Explored:
    safeguard = in_worlds()[number]
    return explored(world_without(safeguard), safeguard, _watch())


def _watch() -> Callable[[int], None]:
    said_s = time.monotonic()

    def watch(states: int) -> None:
        nonlocal said_s
        if time.monotonic() - said_s > PROGRESS_S:
            said_s = time.monotonic()
            print(f"  {states:,} states so far", flush=True)

    return watch


def _tell(seed: int) -> bool:
    found = broken(seed)
    if found is None:
        print(f"seed {seed} broke nothing")
        return True
    print(f"seed {seed} breaks a guarantee:\n{found}\n", flush=True)
    print(f"A shorter run that breaks the same:\n{shortened(found)}")
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
