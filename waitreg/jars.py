"""`waitreg jars fetch|verify`."""

from __future__ import annotations

import click

from wait_registry.java.fetching import main
from wait_registry.java.jars import CONNECT_JAR_KINDS, JAR_KINDS, JarKind
from waitreg.command import Command, Group, Invocation

_EXAMPLES = ("waitreg jars fetch", "waitreg jars fetch connect debezium-jdbc", "waitreg jars verify")
_KINDS = "The kinds are spark and broker (both when you name none), connect, debezium-jdbc and debezium-postgres."


@click.group("jars", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Fetch or verify the jars of Spark's Kafka source, the local broker and Kafka Connect."""


@command.command(
    "fetch",
    cls=Command,
    examples=_EXAMPLES,
    help=f"""Download the jars that are missing, and verify them.

    Takes the jars that jvm/ivy.xml names, with the Ivy inside pyspark and your own mirror settings, and verifies each
    against the committed SHA-256 sums. A second run does nothing. {_KINDS} Name those of Kafka Connect explicitly: the
    worker (`connect`) and two plugins.""",
)
@click.argument("kinds", metavar="[KIND]...", nargs=-1, type=click.Choice(JAR_KINDS + CONNECT_JAR_KINDS))
@click.pass_obj
def fetch(_: Invocation, kinds: tuple[JarKind, ...]) -> int:
    """Download what is missing."""
    return main("fetch", kinds)


@command.command("verify", cls=Command, examples=_EXAMPLES, help=f"Compare the jars with their sums. {_KINDS}")
@click.argument("kinds", metavar="[KIND]...", nargs=-1, type=click.Choice(JAR_KINDS + CONNECT_JAR_KINDS))
@click.pass_obj
def verify(_: Invocation, kinds: tuple[JarKind, ...]) -> int:
    """Only compare the sums."""
    return main("verify", kinds)
