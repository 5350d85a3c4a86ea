"""``python -m tests.simulation [--seeds N] [--first N] [--seed N]``: play seeds until one breaks a guarantee."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.seeds import Found, broken, shortened

PROGRESS_S = 5.0


def main(arguments: list[str]) -> int:
    """Play the seeds; 1 if one of them breaks anything, after its story and a shorter one."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="this one only")
    options = parser.parse_args(arguments)
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


def _tell(found: Found) -> None:
    print(f"seed {found.seed} breaks a guarantee:\n{found}\n", flush=True)
    print(f"A shorter run that breaks the same:\n{shortened(found)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
