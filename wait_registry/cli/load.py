"""`waitreg load`."""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from wait_registry.cli.argument_types import count, share
from wait_registry.cli.command import Command, Invocation

if TYPE_CHECKING:
    from wait_registry.demo.shapes import Maker

_REPORT_EVERY_S = 5.0
_SHAPES: Final = ("orders", "tiny", "binary", "large", "hostile")


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True, help="topic to publish to; it must exist")
    parser.add_argument(
        "--records", type=count, default=10_000, metavar="COUNT", help="how many (%(default)s); 0: until Ctrl-C"
    )
    parser.add_argument(
        "--rate", type=positive_rate, metavar="PER_S", help="records a second; as fast as possible if absent"
    )
    parser.add_argument("--shape", choices=_SHAPES, default="orders", help="kind of records (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same records (default %(default)s)")
    parser.add_argument("--first", type=count, default=0, metavar="INDEX", help="index of the first record (default 0)")
    parser.add_argument("--null-keys", type=share, metavar="SHARE", help="0 to 1 (orders: 0.1)")
    parser.add_argument("--hot-key", type=share, default=0, metavar="SHARE", help="records of one key, 0 to 1 (0)")
    parser.add_argument("--min-value-bytes", type=count, metavar="BYTES", help="orders: pad JSON values to this size")
    parser.add_argument("--binary-values", type=share, metavar="SHARE", help="orders: 0 to 1 (0.05)")
    parser.add_argument("--manifest", type=Path, metavar="FILE", help="append where each record landed, and its hashes")


def _run(invocation: Invocation) -> int:
    from wait_registry.demo.load import LoadPlan, run_load

    given = invocation.arguments
    plan = LoadPlan(
        topic=given.topic,
        records=given.records or None,
        rate_per_s=given.rate,
        seed=given.seed,
        first=given.first,
        make=_maker(given),
        manifest=given.manifest,
    )
    with _stop_requests() as stop:
        result = run_load(invocation.settings(), plan, _Progress(plan.records).show, stop.is_set)
        stopped = " and stopped, as asked" if stop.is_set() else ""
    print(f"published {result.records} records in {result.seconds:.1f} s ({result.rate_per_s:.0f}/s){stopped}")
    return 0


def _maker(given: argparse.Namespace) -> Maker:
    from wait_registry.demo.orders import Shape
    from wait_registry.demo.shapes import Keys, maker

    of_orders = {"null_keys": given.null_keys, "binary_values": given.binary_values}
    of_orders["min_value_bytes"] = given.min_value_bytes
    chosen = {name: value for name, value in of_orders.items() if value is not None}
    if given.shape == "orders":
        return maker("orders", Keys(hot=given.hot_key), Shape(**chosen))
    chosen.pop("null_keys", None)
    return maker(given.shape, Keys(given.null_keys, given.hot_key), Shape(**chosen) if chosen else None)


def positive_rate(text: str) -> float:
    rate = float(text)
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is no rate: records a second, more than 0")
    return rate


@contextmanager
def _stop_requests() -> Iterator[threading.Event]:
    """Turn the first Ctrl-C or SIGTERM into an event; a second one ends the process at once."""
    stop = threading.Event()

    def request(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    before = {number: signal.signal(number, request) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Progress:
    """Says on standard error how far a long load is."""

    def __init__(self, records: int | None) -> None:
        self._of = "" if records is None else f" of {records}"
        self._next = time.monotonic() + _REPORT_EVERY_S

    def show(self, acknowledged: int) -> None:
        if time.monotonic() >= self._next:
            self._next += _REPORT_EVERY_S
            print(f"{acknowledged}{self._of} acknowledged", file=sys.stderr)


COMMAND: Final = Command(
    name="load",
    group="trying out",
    summary="publish realistic or hostile records to a topic",
    description="""\
Publishes records to try a handler, a dead letter topic or a codec with:
  orders   JSON orders with nested and duplicate headers, some null keys, some binary, empty and null values
  tiny     a few bytes and no headers: what the machinery itself costs
  binary   keys, values (16 B to 16 KiB, most of them small) and headers of any bytes
  large    JSON of 64 KiB to 900 kB, most of it at the lower end
  hostile  one oddity a record, in turn: invalid UTF-8, NUL, null and empty keys and values, duplicate, empty, null,
           long and 200 headers, malformed traceparent, headers that look like this system's own, broken, deep JSON
The same seed and index give the same record. Ctrl-C ends it with what was published so far; the manifest is what a
reconciliation compares with.""",
    examples=(
        "waitreg load --topic orders --records 5000",
        "waitreg load --topic orders --rate 200 --records 0 --manifest published.jsonl",
        "waitreg load --topic orders --shape hostile --records 140 --hot-key 0.3",
    ),
    run=_run,
    configure=_configure,
)
