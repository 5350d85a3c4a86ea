"""`waitreg stack up`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from wait_registry.cli.command import Command, Invocation


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("up",), help="start it, print its addresses, keep it until Ctrl-C")
    parser.add_argument("--data-dir", metavar="DIR", type=Path, help="keep the data there; a temporary one otherwise")
    parser.add_argument("--connect", action="store_true", help="a Kafka Connect worker too (`make connect` first)")


def _run(invocation: Invocation) -> int:
    from wait_registry.local.command import run_stack

    return run_stack(invocation.settings(), invocation.arguments.data_dir, connect=invocation.arguments.connect)


COMMAND: Final = Command(
    name="stack",
    group="trying out",
    summary="run a real Kafka broker and a real Postgres on this machine, no Docker",
    description="""\
Starts a Kafka broker and a Postgres as child processes on free loopback ports, with topics and schema made, and prints
their addresses as WAITREG_* lines for your shell. Ctrl-C, or the end of this process however it comes, takes both
down and deletes their data and logs; with --data-dir these stay, and the next start goes on with them. Kafka's own
kafka-... tools are not part of it. Needs Java 17 or newer.
With --connect there is a Kafka Connect worker as well, with this project's plugin and Debezium's connectors, for
`waitreg connect apply`.""",
    examples=("waitreg stack up", "waitreg stack up --connect", "waitreg stack up --data-dir .waitreg/stack"),
    run=_run,
    configure=_configure,
)
