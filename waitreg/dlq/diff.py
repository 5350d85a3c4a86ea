"""`waitreg dlq diff`."""

from __future__ import annotations

from pathlib import Path

import click

from wait_registry.dead_letters.dead_letter import find
from wait_registry.dead_letters.difference import difference
from wait_registry.errors import ConfigurationError
from waitreg.command import Command, Invocation
from waitreg.dlq.edit import bytes_of
from waitreg.dlq.input_record import read_record
from waitreg.read_tables import read_tables


@click.command(
    "diff",
    cls=Command,
    examples=(
        "waitreg dlq diff orders.dlq:0:17 orders.dlq:0:18",
        "waitreg dlq diff orders.dlq:0:17 --input",
        "waitreg dlq diff orders.dlq:0:17 --file body.json",
    ),
)
@click.argument("left", metavar="PLACE")
@click.argument("right", metavar="[PLACE]", required=False)
@click.option("--input", "with_input", is_flag=True, help="Compare with the record in the input topic.")
@click.option("--file", type=click.Path(path_type=Path), metavar="FILE", help="Compare the value with that of FILE.")
@click.pass_obj
def command(invocation: Invocation, left: str, right: str | None, with_input: bool, file: Path | None) -> int:
    """Show how two records differ: key, headers and value.

    JSON values are compared field by field, other values by bytes. Ends with 0 if there is no difference, and with 1 if
    there is one.
    """

    if (right is not None) + with_input + (file is not None) != 1:
        raise ConfigurationError("give a second PLACE, --input or --file: one of the three")
    settings = invocation.settings()
    with read_tables(settings, invocation.path, "the dead letter") as connection:
        dead_letter = find(connection, left)[0]
        other = dead_letter.content if right is None else find(connection, right)[0].content
    if file is not None:
        other = other._replace(value=bytes_of(file))
    elif with_input:
        other = read_record(settings.kafka, dead_letter.record())
    found = list(difference(dead_letter.content, other))
    for line in found:
        print(line)
    return 1 if found else 0
