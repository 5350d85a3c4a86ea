"""`waitreg dlq`, and its commands list, show and diff."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from wait_registry.dead_letters.dead_letter import find
from wait_registry.dead_letters.difference import difference
from wait_registry.dead_letters.filter import FIELDS, parse_filter
from wait_registry.dead_letters.listing import GROUPINGS, groups, page, parse_by, parse_cursor
from wait_registry.errors import ConfigurationError
from waitreg.command import Command, Group, Invocation
from waitreg.dlq.edit import bytes_of, edit
from waitreg.dlq.jobs import audit, jobs
from waitreg.dlq.purge import purge
from waitreg.dlq.redrive import archive, merge, redrive, restore
from waitreg.dlq.show import as_json as json_of
from waitreg.dlq.show import lines, write_body

_WINDOW: Final = "since=24h"
_EXAMPLES: Final = (
    "waitreg dlq list group=payments reason=failed since=2h",
    "waitreg dlq list --by error,topic 'error=*Timeout*'",
    "waitreg dlq list --json group=payments > dead-letters.jsonl",
)


@click.group("dlq", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Find dead letters, look at them, and have them handled again."""


_LIST_HELP: Final = f"""List dead letters, the newest first, or count them.

A condition is FIELD=VALUE, FIELD!=VALUE, FIELD~PART, FIELD>=NUMBER or FIELD<NUMBER. Conditions on different
fields must all hold. Of several = and ~ conditions on the same field, one is enough. An asterisk stands for any
characters. Without since, the last 24 hours are listed.

\b
{chr(10).join(f"  {name:<16} {field.meaning}" for name, field in FIELDS.items())}
"""


@command.command("list", cls=Command, extra="query", examples=_EXAMPLES, help=_LIST_HELP)
@click.argument("conditions", metavar="[CONDITION]...", nargs=-1)
@click.option("--by", metavar="NAMES", help=f"Count by these instead: {','.join(GROUPINGS)}.")
@click.option("--rows", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Rows at most.")
@click.option("--after", metavar="CURSOR", help="The page behind this one; each page names the cursor of the next.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@click.pass_obj
def list_(
    invocation: Invocation, conditions: tuple[str, ...], by: str | None, rows: int, after: str | None, as_json: bool
) -> int:
    """List dead letters, or count them."""
    from waitreg.read_tables import age, read_tables
    from waitreg.result_rows import render_rows

    if not any(condition.startswith("since=") for condition in conditions):
        conditions = (*conditions, _WINDOW)
    chosen = parse_filter(conditions, datetime.now(UTC))
    names = parse_by(by) if by is not None else []
    if names and after:
        raise ConfigurationError("--after pages through dead letters, and --by counts them: give one of the two")
    cursor = None if after is None else parse_cursor(after)
    settings = invocation.settings()
    with read_tables(settings, invocation.path, "the list of dead letters") as connection:
        as_of = age(connection, settings)
        found = groups(connection, chosen, names, rows) if names else page(connection, chosen, rows, cursor)
    for line in render_rows(found.columns, found.rows, as_json):
        print(line)
    # Only rows on standard output, for scripts.
    output = sys.stderr if as_json else sys.stdout
    print(f"conditions: {chosen}", file=output)
    if found.following is not None:
        print(f"more: --after '{found.following}'", file=output)
    print(as_of, file=output)
    return 0


@command.command(
    "show",
    cls=Command,
    extra="query",
    examples=(
        "waitreg dlq show orders.dlq:0:17",
        "waitreg dlq show 019fc448-d29b-8abc-9def-0123456789ab --body body.bin",
    ),
)
@click.argument("which", metavar="PLACE|WAIT-ID")
@click.option("--body", type=click.Path(path_type=Path), metavar="FILE", help="Also write the value to FILE, as it is.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per dead letter, values whole.")
@click.pass_obj
def show(invocation: Invocation, which: str, body: Path | None, as_json: bool) -> int:
    """Show a dead letter: error, record, and what happened to it.

    PLACE is topic:partition:offset of the dead letter, as `waitreg dlq list` prints it. A JSON value is shown with line
    breaks. An Avro or Protobuf value that names its schema is shown as JSON, if processor.schema_registry.url is set.
    Other bytes that aren't text are shown as hexadecimal digits. At most 2 KiB of a value are shown. Characters that
    could change the terminal are escaped.
    """
    from wait_registry.dead_letters.outcomes import last_redrive
    from wait_registry.postgres.query_file import bind, load_query
    from wait_registry.schemas.registry import for_display
    from waitreg.query import print_rows
    from waitreg.read_tables import age, read_tables

    settings, query = invocation.settings(), load_query("record_deliveries")
    registry = for_display(settings.processor.schema_registry)
    with read_tables(settings, invocation.path, "the dead letter") as connection:
        as_of = age(connection, settings)
        letters = find(connection, which)
        for letter in letters:
            wait_id = letter.row["wait_expiration_uuid"]
            redriven = None if wait_id is None else last_redrive(settings, connection, wait_id)
            for line in [json_of(letter, redriven)] if as_json else lines(letter, registry, redriven):
                print(line)
        key = letters[0].row["idempotency_key"]
        if key is not None and not as_json:
            print("\ndeliveries of this record:")
            print_rows(connection, query, bind(query, {"id": key}))
    if body is not None:
        write_body(letters[0], body)
    print(as_of, file=sys.stderr if as_json else sys.stdout)
    return 0


@command.command(
    "diff",
    cls=Command,
    extra="query",
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
def diff(invocation: Invocation, left: str, right: str | None, with_input: bool, file: Path | None) -> int:
    """Show how two records differ: key, headers and value.

    JSON values are compared field by field, other values by bytes. Ends with 0 if there is no difference, and with 1 if
    there is one.
    """
    from waitreg.read_tables import read_tables
    from waitreg.redrive.input_record import read_record

    if (right is not None) + with_input + (file is not None) != 1:
        raise ConfigurationError("give a second PLACE, --input or --file: one of the three")
    settings = invocation.settings()
    with read_tables(settings, invocation.path, "the dead letter") as connection:
        letter = find(connection, left)[0]
        other = letter.content if right is None else find(connection, right)[0].content
    if file is not None:
        other = other._replace(value=bytes_of(file))
    elif with_input:
        other = read_record(settings.kafka, letter.record())
    found = list(difference(letter.content, other))
    for line in found:
        print(line)
    return 1 if found else 0


for _member in (redrive, edit, merge, archive, restore, purge, jobs, audit):
    command.add_command(_member)
