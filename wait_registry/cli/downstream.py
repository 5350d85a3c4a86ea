"""`waitreg downstream`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from wait_registry.cli.argument_types import port
from wait_registry.cli.command import Command, Invocation


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default %(default)s)")
    parser.add_argument("--port", type=port, default=8080, help="0 takes a free one (default %(default)s)")
    parser.add_argument(
        "--mixture",
        default="10%:1s,90%:200ms",
        metavar="SHARES",
        help="latencies: 200ms, 1s-5s (evenly between) or hang, by shares (default %(default)s)",
    )
    parser.add_argument(
        "--fail",
        default="",
        metavar="SHARES",
        help="calls that fail: a status, or drop (no answer), e.g. 1%%:503,0.5%%:drop",
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="append one JSON line a call")


def _run(invocation: Invocation) -> int:
    from wait_registry.demo.downstream import DownstreamOptions, run_downstream

    given = invocation.arguments
    run_downstream(
        DownstreamOptions(host=given.host, port=given.port, mixture=given.mixture, failures=given.fail, log=given.log),
        announce=lambda line: print(line, flush=True),
    )
    return 0


COMMAND: Final = Command(
    name="downstream",
    group="trying out",
    summary="an HTTP service with the latencies and failures you choose",
    description="""\
Answers every POST after a latency chosen by its own counter, so that runs are comparable: of ten calls under
"10%:1s,90%:200ms" one takes a second. A call that hangs ends when its caller gives up; one that is dropped sees its
connection closed instead of an answer. GET /stats says what it measured: count, mean, percentiles. POST /mixture makes
it slow (or well again) while it runs: the body is a mixture, or JSON {"mixture": ..., "fail": ...}; GET shows it.""",
    examples=(
        "waitreg downstream --port 8080",
        "waitreg downstream --mixture '5%:1s-5s,1%:hang,94%:50ms' --fail '1%:503,0.5%:drop' --log calls.jsonl",
    ),
    run=_run,
    configure=_configure,
)
