"""`waitreg dlq merge`."""

from __future__ import annotations

from typing import Any

import click

from waitreg.command import Command
from waitreg.dlq.redrive import command as redrive


@click.command(
    "merge",
    cls=Command,
    examples=("waitreg dlq merge orders.dlq --rate 50 --send --reason 'service is back'",),
)
@click.argument("topics", metavar="DLQ-TOPIC...", nargs=-1, required=True)
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later. --send needs it.")
@click.option("--rate", type=click.FloatRange(0.01), metavar="N", help="Records per second; see redrive.rate.")
@click.option("--send", is_flag=True, help="Do it; without this nothing is changed.")
@click.pass_context
def command(context: click.Context, /, topics: tuple[str, ...], **given: Any) -> int:
    """Redrive everything that is open in dead letter topics; `waitreg dlq redrive dlq=TOPIC` has more options."""
    result: int = context.invoke(redrive, which=tuple(f"dlq={topic}" for topic in topics), as_json=False, **given)
    return result
