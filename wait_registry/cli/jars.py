"""`waitreg jars fetch|verify`."""

from __future__ import annotations

import argparse
from typing import Final

from wait_registry.cli.command import Command, Invocation


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("fetch", "verify"), help="download what is missing, or only check the sums")
    parser.add_argument(
        "kind",
        nargs="*",
        metavar="KIND",
        help="spark broker (both when none is named) connect debezium-jdbc debezium-postgres",
    )


def _run(invocation: Invocation) -> int:
    from wait_registry.jvm import main

    return main([invocation.arguments.action, *invocation.arguments.kind])


COMMAND: Final = Command(
    name="jars",
    group="setting up",
    summary="fetch and verify the jars of Spark's Kafka source, the embedded broker and Kafka Connect",
    description="""\
`fetch` downloads the jars that jvm/ivy.xml names, with the Ivy inside pyspark and your own mirror settings, and
verifies each against the committed SHA-256 sums; a second run does nothing. `verify` only compares. Those of Kafka
Connect are wanted by name: the worker (`connect`) and two plugins.""",
    examples=("waitreg jars fetch", "waitreg jars fetch connect debezium-jdbc", "waitreg jars verify"),
    run=_run,
    configure=_configure,
)
