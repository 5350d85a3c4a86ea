"""`waitreg dlq list`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Final

import click

from wait_registry.dead_letters.counts import GROUPINGS, groups, parse_by
from wait_registry.dead_letters.filter import FIELDS, parse_filter
from wait_registry.dead_letters.listing import page, parse_cursor
from wait_registry.errors import ConfigurationError
from waitreg.command import Command, Invocation
from waitreg.read_tables import age, read_tables
from waitreg.result_rows import render_rows

_WINDOW: Final = "since=24h"
_EXAMPLES: Final = (
    "waitreg dlq list group=payments reason=failed since=2h",
    "waitreg dlq list --by error,topic 'error=*Timeout*'",
    "waitreg dlq list --json group=payments > dead-letters.jsonl",
)
_HELP: Final = f"""List dead letters, the newest first, or count them.

A condition is FIELD=VALUE, FIELD!=VALUE, FIELD~PART, FIELD>=NUMBER or FIELD<NUMBER. Conditions on different
fields must all hold. Of several = and ~ conditions on the same field, one is enough. An asterisk stands for any
characters. Without since, the last 24 hours are listed.

\b
{chr(10).join(f"  {name:<16} {field.meaning}" for name, field in FIELDS.items())}
"""


@click.command("list", cls=Command, examples=_EXAMPLES, help=_HELP)
@click.argument("conditions", metavar="[CONDITION]...", nargs=-1)
@click.option("--by", metavar="NAMES", help=f"Count by these instead: {','.join(GROUPINGS)}.")
@click.option("--rows", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Rows at most.")
@click.option("--after", metavar="CURSOR", help="The page behind this one; each page names the cursor of the next.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@click.pass_obj
def command(
    invocation: Invocation, conditions: tuple[str, ...], by: str | None, rows: int, after: str | None, as_json: bool
) -> int:
    """List dead letters, or count them."""
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
