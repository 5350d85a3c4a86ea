"""`waitreg demo`."""

from __future__ import annotations

import argparse
from typing import Final

from wait_registry.cli.command import Command, Invocation


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave it running afterwards and print its addresses")


def _run(invocation: Invocation) -> int:
    from wait_registry.demo.main import run_demo

    return run_demo(keep=invocation.arguments.keep)


COMMAND: Final = Command(
    name="demo",
    group="trying out",
    summary="watch all of it work: throughput, a killed processor, the reconciliation",
    description="""\
Starts a real Kafka broker, a real Postgres and the three services as separate processes on this machine, runs the same
handler under `batch` and `registry`, prints both rates beside their limits, then kills a processor in mid-work and
shows its records standing in Postgres, expiring and arriving in the dead letter topic, each once. Ends with the
reconciliation of everything published. Under four minutes; Ctrl-C takes everything down.""",
    examples=("waitreg demo", "waitreg demo --keep"),
    run=_run,
    configure=_configure,
    exit_codes=(0, 1, 2, 4),
)
