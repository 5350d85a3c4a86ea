"""Fuzz the readers of everything that somebody else may have written.

    make fuzz MINUTES=60                        every target by turns
    make fuzz MINUTES=5 TARGET=headers_json     one of them
    make fuzz ARGS=--list                       what there is

Each target runs under atheris (libFuzzer) in a process of its own, beginning with the golden vectors and the corpus in
tests/fuzz/corpus. What reached new code is minimised and kept there; an ordinary test replays it. A finding is kept in
.waitreg/fuzz and printed with the line that repeats it. Exit status: 0 nothing found, 1 something, 2 no atheris.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Sequence

from tests.fuzz.campaign import Outcome, fuzz
from tests.fuzz.catalogue import target_names, target_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module's docstring says; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.list:
        print("\n".join(target_names()))
        return 0
    if importlib.util.find_spec("atheris") is None:
        print("saw no atheris, expected it on PYTHONPATH. Run it by `make fuzz`, which fetches it", file=sys.stderr)
        return 2
    chosen = [target_of(name) for name in options.target or target_names()]
    share_s = options.minutes * 60 / sum(target.share for target in chosen)
    outcomes = []
    for target in chosen:
        outcomes.append(fuzz(target, max(5, round(share_s * target.share))))
        print(outcomes[-1], flush=True)
    return _conclude(outcomes)


def _conclude(outcomes: Sequence[Outcome]) -> int:
    found = [outcome for outcome in outcomes if outcome.finding is not None]
    executions = sum(outcome.executions for outcome in outcomes)
    print(f"{len(outcomes)} targets, {executions} executions, {len(found)} targets with a finding")
    return 1 if found else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="for all targets together")
    parser.add_argument("--target", action="append", choices=target_names(), help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the targets")
    return parser


if __name__ == "__main__":
    sys.exit(main())
