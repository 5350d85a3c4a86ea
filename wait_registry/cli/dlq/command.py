"""`waitreg dlq list`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Final

import click

from wait_registry.cli.command import Command, Group, Invocation
from wait_registry.errors import ConfigurationError

_WINDOW: Final = "since=24h"
_EXAMPLES: Final = (
    "waitreg dlq list group=payments reason=failed since=2h",
    "waitreg dlq list --by error,topic 'error=*Timeout*'",
    "waitreg dlq list --json group=payments > letters.jsonl",
)


@click.group("dlq", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Find dead letters and look at them."""


@command.command("list", cls=Command, extra="query", examples=_EXAMPLES)
@click.argument("conditions", metavar="[CONDITION]...", nargs=-1)
@click.option("--by", metavar="NAMES", help="Count by these instead: reason,error,topic,group,instance,dlq,hour.")
@click.option("--rows", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Rows at most.")
@click.option("--after", metavar="CURSOR", help="The page behind this one; each page names the cursor of the next.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per row.")
@click.pass_obj
def list_(
    invocation: Invocation, conditions: tuple[str, ...], by: str | None, rows: int, after: str | None, as_json: bool
) -> int:
    """List dead letters, the newest first, or count them.

    A condition is FIELD=VALUE, FIELD!=VALUE, FIELD~PART, FIELD>=NUMBER or FIELD<NUMBER. Several on one field mean "or",
    different fields mean "and". An asterisk stands for any characters. Fields: group, topic, partition, offset (of
    the record in the input topic), dlq, reason, error, message, key, instance, delivery, wait_id, idempotency_key,
    since, before. Without since, the last 24 hours are listed.
    """
    from redrive.dead_letters import GROUPINGS, groups, page, parse_cursor
    from redrive.filter import parse_filter
    from wait_registry.cli.read_tables import age, read_tables
    from wait_registry.cli.result_rows import render_rows

    if not any(condition.startswith("since=") for condition in conditions):
        conditions = (*conditions, _WINDOW)
    chosen = parse_filter(conditions, datetime.now(UTC))
    names = list(dict.fromkeys(by.split(","))) if by is not None else []
    if unknown := [name for name in names if name not in GROUPINGS]:
        raise ConfigurationError(f"--by takes {','.join(GROUPINGS)}, not {unknown[0]!r}")
    if names and after:
        raise ConfigurationError("--after pages through dead letters, and --by counts them: give one of the two")
    cursor = None if after is None else parse_cursor(after)
    with read_tables(invocation.settings(), "the list of dead letters") as connection:
        as_of = age(connection, invocation.settings())
        found = groups(connection, chosen, names, rows) if names else page(connection, chosen, rows, cursor)
        for line in render_rows(found.columns, found.rows, as_json):
            print(line)
    beside = sys.stderr if as_json else sys.stdout
    print(f"conditions: {chosen}", file=beside)
    if found.following is not None:
        print(f"more: --after '{found.following}'", file=beside)
    print(as_of, file=beside)
    return 0
