"""`waitreg load`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import Progress

from wait_registry.service.process import stop_requests
from waitreg.command import Command, Invocation
from waitreg.load.load import LoadPlan, run_load
from waitreg.load.shapes import SHAPES

_COUNT: Final = click.IntRange(min=0)
_MOST_PER_S: Final = 1_000_000


@click.command(
    "load",
    cls=Command,
    examples=(
        "waitreg load --topic orders --records 5000",
        "waitreg load --topic orders --rate 200 --records 0 --manifest published.jsonl",
        "waitreg load --topic orders --shape hostile --records 140",
    ),
)
@click.option("--topic", required=True, help="Topic to publish to; it must exist.")
@click.option(
    "--records", type=_COUNT, default=10_000, show_default=True, metavar="COUNT", help="How many; 0: until Ctrl-C."
)
@click.option(
    "--rate",
    "rate_per_s",
    type=click.FloatRange(0, _MOST_PER_S, min_open=True),
    metavar="PER_S",
    help="Records per second; without it, no limit.",
)
@click.option("--shape", type=click.Choice(tuple(SHAPES)), default="orders", show_default=True, help="Kind of records.")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same records.")
@click.option("--first", type=_COUNT, default=0, metavar="INDEX", show_default=True, help="Index of the first record.")
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
    records: int,
    shape: str,
    **chosen: Any,
) -> int:
    """Publish realistic or hostile records to a topic.

    Use them to try a handler, a dead letter topic or a codec. The shapes are:

    \b
      orders   JSON orders with nested and duplicate headers, some null keys, some binary, empty and null values
      plain    the same orders, all with a key and a JSON value
      tiny     a few bytes and no headers: the cost of the machinery itself
      binary   keys, values (16 B to 16 KiB, most of them small) and headers of any bytes
      hostile  one oddity per record, in turn: invalid UTF-8, NUL, null and empty keys and values, duplicate, empty,
               null, long and 200 headers, malformed traceparent, headers like those of this project, deep JSON

    The same seed and index give the same record. Ctrl-C ends it; `waitreg reconcile` compares the manifest of the
    records published until then.
    """
    plan = LoadPlan(records=records or None, make=SHAPES[shape], **chosen)
    console = Console(stderr=True)
    with stop_requests() as stop, Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("published", total=records or None)
        result = run_load(
            invocation.settings(), plan, lambda count: bar.update(task, completed=count), stopping=stop.is_set
        )
        stopped = " and stopped, as asked" if stop.is_set() else ""
    rate_per_s = result.records / result.seconds if result.seconds else 0.0
    print(f"published {result.records} records in {result.seconds:.1f} s ({rate_per_s:.0f}/s){stopped}")
    return 0
