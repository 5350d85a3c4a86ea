"""``python -m tests.simulation [--seeds N] [--first N] [--seed N]``: play seeds until one breaks a guarantee.

With ``--exhaustive``, try every order of steps in the small worlds instead, then without each safeguard in turn.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from tests.simulation.processor_worlds import LARGE_WORLDS
from tests.simulation.processor_worlds import WORLDS as PROCESSOR_WORLDS
from tests.simulation.removal_worlds import in_worlds, safeguard_row, world_without
from tests.simulation.seeds import Found, broken, shortened
from tests.simulation.small_worlds import WORLDS, explored, world_row

PROGRESS_S = 5.0


def main(arguments: list[str]) -> int:
    """Play the seeds; 1 if one of them breaks anything, after its story and a shorter one."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--exhaustive", action="store_true", help="every order of steps in the small worlds instead")
    parser.add_argument(
        "--stories", action="store_true", help="with --exhaustive: how each removed safeguard is missed"
    )
    options = parser.parse_args(arguments)
    if options.exhaustive:
        return 0 if _explore(options.stories) else 1
    first, count = (options.first, options.seeds) if options.seed is None else (options.seed, 1)
    began_s = said_s = time.monotonic()
    for number, seed in enumerate(range(first, first + count)):
        found = broken(seed)
        if found is not None:
            _tell(found)
            return 1
        if time.monotonic() - said_s > PROGRESS_S:
            said_s = time.monotonic()
            print(f"{number + 1:,} of {count:,} seeds, {said_s - began_s:.0f} s", flush=True)
    print(f"{count:,} seeds from {first} broke nothing, {time.monotonic() - began_s:.0f} s")
    return 0


def _explore(stories: bool) -> bool:
    """Print the tables of docs/simulation.md; return whether all is as it must be."""
    states = wrong = 0
    for world in (*WORLDS, *PROCESSOR_WORLDS, *LARGE_WORLDS):
        found = explored(world, watch=_watch())
        print(world_row(found), flush=True)
        states += found.states
        if found.violation is not None:
            wrong += 1
            print(found.violation)
    print(f"{states:,} states, {wrong} violations\n")
    for safeguard in in_worlds():
        found = explored(world_without(safeguard), safeguard, _watch())
        print(safeguard_row(safeguard, found), flush=True)
        wrong += not safeguard.breaks_as_said(found.violation.broken if found.violation else "")
        if stories and found.violation is not None:
            print(found.violation)
    return not wrong


def _watch() -> Callable[[int], None]:
    said_s = time.monotonic()

    def watch(states: int) -> None:
        nonlocal said_s
        if time.monotonic() - said_s > PROGRESS_S:
            said_s = time.monotonic()
            print(f"  {states:,} states so far", flush=True)

    return watch


def _tell(found: Found) -> None:
    print(f"seed {found.seed} breaks a guarantee:\n{found}\n", flush=True)
    print(f"A shorter run that breaks the same:\n{shortened(found)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
