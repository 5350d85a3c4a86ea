"""``python -m tests.model [--wide] [--stories]``: explores the design, then removes each safeguard in turn."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable

from tests.model.design import DESIGN, WIDE
from tests.model.explorer import Model
from tests.model.safeguards import SAFEGUARDS, breaks_as_said
from tests.model.tables import design_row, explored, safeguard_row


def main(arguments: list[str]) -> int:
    """Print both tables and a sum below each; 1 if anything isn't as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("--wide", action="store_true", help="the design in wider bounds instead: many minutes")
    parser.add_argument("--stories", action="store_true", help="show how each removed safeguard is missed")
    options = parser.parse_args(arguments)
    if options.wide:
        return 0 if _design(WIDE) else 1
    kept, missed = _design(DESIGN), _safeguards(options.stories)
    return 0 if kept and missed else 1


def _design(models: Iterable[Model]) -> bool:
    states = broken = 0
    for model in models:
        print(design_row(model), flush=True)
        found = explored(model)
        states += found.states
        if found.violation is not None:
            broken += 1
            print(found.violation)
    print(f"{states:,} states, {broken} violations\n")
    return not broken


def _safeguards(stories: bool) -> bool:
    as_said = missed = 0
    for safeguard in SAFEGUARDS:
        print(safeguard_row(safeguard), flush=True)
        found = explored(safeguard.without)
        as_said += breaks_as_said(safeguard, found)
        missed += found.violation is not None
        if stories and found.violation is not None:
            print(found.violation)
    print(f"{len(SAFEGUARDS)} safeguards removed in turn: {missed} are missed, the others are second lines")
    return as_said == len(SAFEGUARDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
