"""``python -m tests.model [--wide] [--stories]``: explores the design, and removes each safeguard in turn."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable

from tests.model.design import DESIGN, WIDE
from tests.model.explorer import Explored, Model, explore
from tests.model.safeguards import SAFEGUARDS, breaks_as_said

MOST_STATES = 5_000_000


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--wide", action="store_true", help="the design in wider bounds as well: minutes")
    parser.add_argument("--stories", action="store_true", help="print how each removed safeguard is missed")
    options = parser.parse_args(arguments)
    kept = _design((*DESIGN, *WIDE) if options.wide else DESIGN)
    missed = _safeguards(options.stories)
    return 0 if kept and missed else 1


def _design(models: Iterable[Model]) -> bool:
    print(f"{'the design':60} {'states':>8} {'steps':>9} {'depth':>5} {'s':>6}")
    found: list[Explored] = []
    for model in models:
        began_s = time.monotonic()
        explored = explore(model, MOST_STATES)
        found.append(explored)
        took_s = time.monotonic() - began_s
        print(f"{model.name:60} {explored.states:8} {explored.steps:9} {explored.depth:5} {took_s:6.1f}", flush=True)
        if explored.violation is not None:
            print(explored.violation)
    broken = sum(explored.violation is not None for explored in found)
    print(f"{sum(explored.states for explored in found)} states, {broken} promises broken\n")
    return not broken


def _safeguards(stories: bool) -> bool:
    print(f"{'without':40} {'states':>8}  what breaks first")
    as_said = 0
    for safeguard in SAFEGUARDS:
        explored = explore(safeguard.without)
        as_said += breaks_as_said(safeguard, explored)
        what = explored.violation.broken if explored.violation else "nothing"
        print(f"{safeguard.name:40} {explored.states:8}  {what}", flush=True)
        if stories and explored.violation:
            print(explored.violation)
    missed = sum(safeguard.breaks is not None for safeguard in SAFEGUARDS)
    print(
        f"{len(SAFEGUARDS)} safeguards removed one by one: {missed} are missed, {len(SAFEGUARDS) - missed} are second "
        f"lines; {as_said} as expected"
    )
    return as_said == len(SAFEGUARDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
