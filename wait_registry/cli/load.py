"""`waitreg load`."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from wait_registry.cli.command import Command, Invocation
from wait_registry.cli.service_process import stop_requests

_REPORT_EVERY_S = 5.0
_SHAPES: Final = ("orders", "tiny", "binary", "large", "hostile")
_COUNT: Final = click.IntRange(min=0)


class _Number(click.FloatRange):
    """A number within bounds; Click's own type takes NaN and infinity for one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


_SHARE: Final = _Number(0, 1)


@click.command(
    "load",
    cls=Command,
    examples=(
        "waitreg load --topic orders --records 5000",
        "waitreg load --topic orders --rate 200 --records 0 --manifest published.jsonl",
        "waitreg load --topic orders --shape hostile --records 140 --hot-key 0.3",
    ),
)
@click.option("--topic", required=True, help="Topic to publish to; it must exist.")
@click.option(
    "--records", type=_COUNT, default=10_000, show_default=True, metavar="COUNT", help="How many; 0: until Ctrl-C."
)
@click.option(
    "--rate", type=_Number(min=0, min_open=True), metavar="PER_S", help="Records per second; without it, no limit."
)
@click.option("--shape", type=click.Choice(_SHAPES), default="orders", show_default=True, help="Kind of records.")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same records.")
@click.option("--first", type=_COUNT, default=0, metavar="INDEX", show_default=True, help="Index of the first record.")
@click.option("--null-keys", type=_SHARE, metavar="SHARE", help="Records without a key, 0 to 1 (orders: 0.1).")
@click.option(
    "--hot-key", type=_SHARE, default=0, show_default=True, metavar="SHARE", help="Records of one key, 0 to 1."
)
@click.option("--min-value-bytes", type=_COUNT, metavar="BYTES", help="orders: pad JSON values to this size.")
@click.option("--binary-values", type=_SHARE, metavar="SHARE", help="orders: binary values, 0 to 1 (0.05).")
@click.option(
    "--manifest",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Append partition, offset and hashes of each record.",
)
@click.pass_obj
def command(
    invocation: Invocation,
    /,
    topic: str,
    records: int,
    rate: float | None,
    seed: int,
    first: int,
    manifest: Path | None,
    shape: str,
    null_keys: float | None,
    hot_key: float,
    **of_orders: Any,
) -> int:
    """Publish realistic or hostile records to a topic.

    Use them to try a handler, a dead letter topic or a codec. The shapes are:

    \b
      orders   JSON orders with nested and duplicate headers, some null keys, some binary, empty and null values
      tiny     a few bytes and no headers: the cost of the machinery itself
      binary   keys, values (16 B to 16 KiB, most of them small) and headers of any bytes
      large    JSON of 64 KiB to 900 kB, most of it at the lower end
      hostile  one oddity per record, in turn: invalid UTF-8, NUL, null and empty keys and values, duplicate, empty,
               null, long and 200 headers, malformed traceparent, headers like those of this project, deep JSON

    The same seed and index give the same record. Ctrl-C ends it; `waitreg reconcile` compares the manifest of the
    records published until then.
    """
    from wait_registry.demo.load import LoadPlan, run_load
    from wait_registry.demo.orders import Shape
    from wait_registry.demo.shapes import Keys, maker

    chosen = {name: value for name, value in of_orders.items() if value is not None}
    plan = LoadPlan(
        topic=topic,
        records=records or None,
        rate_per_s=rate,
        seed=seed,
        first=first,
        make=maker(shape, Keys(null_keys, hot_key), Shape(**chosen) if chosen else None),
        manifest=manifest,
    )
    with stop_requests() as stop:
        result = run_load(invocation.settings(), plan, _progress_of(plan.records), stop.is_set)
        stopped = " and stopped, as asked" if stop.is_set() else ""
    print(f"published {result.records} records in {result.seconds:.1f} s ({result.rate_per_s:.0f}/s){stopped}")
    return 0


def _progress_of(records: int | None) -> Callable[[int], None]:
    """Return what reports on standard error, every few seconds, how far a load is."""
    of = "" if records is None else f" of {records}"
    next_s = time.monotonic() + _REPORT_EVERY_S

    def report(acknowledged: int) -> None:
        nonlocal next_s
        if time.monotonic() >= next_s:
            next_s += _REPORT_EVERY_S
            print(f"{acknowledged}{of} acknowledged", file=sys.stderr)

    return report
