"""`waitreg downstream`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from waitreg.command import Command, Invocation
from waitreg.downstream.service import Downstream, serve


@click.command(
    "downstream",
    cls=Command,
    examples=(
        "waitreg downstream --port 8080",
        "waitreg downstream --mixture '5%:1s-5s,1%:hang,94%:50ms' --fail '1%:503,0.5%:drop' --log calls.jsonl",
    ),
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=8080, show_default=True, help="0 takes a free one.")
@click.option(
    "--mixture",
    default="10%:1s,90%:200ms",
    show_default=True,
    metavar="SHARES",
    help="Latencies by share: 200ms, 1s-5s (evenly between) or hang.",
)
@click.option(
    "--fail",
    "failures",
    default="",
    metavar="SHARES",
    help="Calls that fail, by share: a status, or drop (no answer), e.g. 1%:503,0.5%:drop.",
)
@click.option(
    "--capacity", type=click.IntRange(0), default=0, help="Calls served at once, the others wait; 0 serves all."
)
@click.option("--log", type=click.Path(path_type=Path), metavar="FILE", help="Append one JSON line per call.")
@click.pass_obj
def command(_: Invocation, /, **behavior: Any) -> int:
    """Run an HTTP service with the latencies and failures you choose.

    Answers every POST after a latency chosen by its own counter, so that runs are comparable: under
    "10%:1s,90%:200ms" one of ten calls takes a second. A call that hangs ends when its caller gives up; for a call
    that is dropped, the connection is closed without an answer.

    GET /stats returns how many calls were answered, run now, and ended with each status; --log has their latencies.
    POST /mixture changes it while it runs: its body is JSON with "mixture", "fail" or "capacity", or several of them.
    """
    asyncio.run(serve(Downstream(**behavior)))
    return 0
