"""`waitreg load`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Final

from waitreg.commands.command import Command, Invocation

_REPORT_EVERY_S = 5.0


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True, help="topic to publish to; it must exist")
    parser.add_argument("--records", type=int, default=10_000, metavar="COUNT", help="how many (default %(default)s)")
    parser.add_argument("--rate", type=float, metavar="PER_S", help="records a second; as fast as possible if absent")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same records (default %(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="INDEX", help="index of the first order (default 0)")
    parser.add_argument("--min-value-bytes", type=int, default=0, metavar="BYTES", help="pad JSON values to this size")
    parser.add_argument("--null-keys", type=float, default=0.1, metavar="SHARE", help="0 to 1 (default %(default)s)")
    parser.add_argument("--binary-values", type=float, default=0.05, metavar="SHARE", help="0 to 1 (%(default)s)")
    parser.add_argument("--manifest", type=Path, metavar="FILE", help="append where each record landed, and its hashes")


def _run(invocation: Invocation) -> int:
    from waitreg.load import LoadPlan, run_load
    from waitreg.orders import Shape

    given = invocation.arguments
    shape = Shape(null_keys=given.null_keys, binary_values=given.binary_values, min_value_bytes=given.min_value_bytes)
    plan = LoadPlan(
        topic=given.topic,
        records=given.records,
        rate_per_s=given.rate,
        seed=given.seed,
        first=given.first,
        shape=shape,
        manifest=given.manifest,
    )
    result = run_load(invocation.settings(), plan, _Progress(plan.records).show)
    print(f"published {result.records} records in {result.seconds:.1f} s ({result.rate_per_s:.0f}/s)")
    return 0


class _Progress:
    """Says on standard error how far a long load is."""

    def __init__(self, records: int) -> None:
        self._records = records
        self._next = time.monotonic() + _REPORT_EVERY_S

    def show(self, acknowledged: int) -> None:
        if time.monotonic() >= self._next:
            self._next += _REPORT_EVERY_S
            print(f"{acknowledged} of {self._records} acknowledged", file=sys.stderr)


COMMAND: Final = Command(
    name="load",
    group="trying out",
    summary="publish realistic records to a topic",
    description="""\
Publishes JSON orders with nested and duplicate headers, some null keys, some binary, empty and null values: the records
to try a handler and a dead letter topic with. The manifest is what a reconciliation compares with.""",
    examples=(
        "waitreg load --topic orders --records 5000",
        "waitreg load --topic orders --rate 200 --records 60000 --manifest published.jsonl",
    ),
    run=_run,
    configure=_configure,
)
