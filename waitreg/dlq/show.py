"""`waitreg dlq show`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from wait_registry.dead_letters.dead_letter import find
from wait_registry.dead_letters.outcome_reader import last_redrive
from wait_registry.postgres.query_file import bind, load_query
from wait_registry.schemas.registry import for_display
from waitreg.command import Command, Invocation
from waitreg.dlq.dead_letter_text import as_json as as_json_line
from waitreg.dlq.dead_letter_text import lines, write_body
from waitreg.query import print_rows
from waitreg.read_tables import age, read_tables


@click.command(
    "show",
    cls=Command,
    examples=(
        "waitreg dlq show orders.dlq:0:17",
        "waitreg dlq show 019fc448-d29b-8abc-9def-0123456789ab --body body.bin",
    ),
)
@click.argument("which", metavar="PLACE|WAIT-ID")
@click.option("--body", type=click.Path(path_type=Path), metavar="FILE", help="Also write the value to FILE, as it is.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per dead letter, values whole.")
@click.pass_obj
def command(invocation: Invocation, which: str, body: Path | None, as_json: bool) -> int:
    """Show a dead letter: error, record, and what happened to it.

    PLACE is topic:partition:offset of the dead letter, as `waitreg dlq list` prints it. A JSON value is shown with line
    breaks. An Avro or Protobuf value that names its schema is shown as JSON, if processor.schema_registry.url is set.
    Other bytes that aren't text are shown as hexadecimal digits. At most 2 KiB of a value are shown. Characters that
    could change the terminal are escaped.
    """
    settings, query = invocation.settings(), load_query("record_deliveries")
    registry = for_display(settings.processor.schema_registry)
    with read_tables(settings, invocation.path, "the dead letter") as connection:
        as_of = age(connection, settings)
        found = find(connection, which)
        for dead_letter in found:
            wait_id = dead_letter.row["wait_expiration_uuid"]
            redriven = None if wait_id is None else last_redrive(settings, connection, wait_id)
            for line in [as_json_line(dead_letter, redriven)] if as_json else lines(dead_letter, registry, redriven):
                print(line)
        key = found[0].row["idempotency_key"]
        if key is not None and not as_json:
            print("\ndeliveries of this record:")
            print_rows(connection, query, bind(query, {"id": key}))
    if body is not None:
        write_body(found[0], body)
    print(as_of, file=sys.stderr if as_json else sys.stdout)
    return 0
