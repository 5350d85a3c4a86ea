"""`waitreg dlq edit`: a dead letter's record with changes, and with --send its redrive."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from wait_registry.dead_letters.dead_letter import find, parse_place
from wait_registry.dead_letters.difference import Content
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind
from waitreg.command import Command, Invocation
from waitreg.dlq.job_run import allowed, begin, require_reason
from waitreg.read_tables import read_tables
from waitreg.redrive.dry_run import dry_run
from waitreg.redrive.edit import Review, review, with_headers
from waitreg.redrive.request import Options, asker_of_command, selection

_STDIN: Final = "-"
_FILE: Final = click.Path(path_type=Path, allow_dash=True)


@click.command(
    "edit",
    cls=Command,
    examples=(
        "waitreg dlq show orders.dlq:0:17 --body order.json",
        "waitreg dlq edit orders.dlq:0:17 --value order.json",
        "waitreg dlq edit orders.dlq:0:17 --value order.json --reason 'amount was text' --send",
        "waitreg dlq edit orders.dlq:0:17 --header tenant blue --without-header debug",
    ),
)
@click.argument("place", metavar="PLACE")
@click.option("--value", type=_FILE, metavar="FILE", help="The value is what FILE has, - for standard input.")
@click.option("--null-value", is_flag=True, help="The value is null.")
@click.option("--key", type=_FILE, metavar="FILE", help="The key is what FILE has: another partition, and order.")
@click.option("--header", "headers", nargs=2, multiple=True, metavar="NAME VALUE", help="Set a header, in its place.")
@click.option("--without-header", "without", multiple=True, metavar="NAME", help="Remove all headers with this name.")
@click.option("--may-be-done", is_flag=True, help="Also if it expired, and the work may have been done.")
@click.option("--finished-late", is_flag=True, help="Also if the work was done after the deadline.")
@click.option("--over-max", is_flag=True, help="Also if its record was redriven redrive.max_redrives times.")
@click.option("--without-members", is_flag=True, help="Also if the group has no member now.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for those who look later. --send needs it.")
@click.option("--send", is_flag=True, help="Send it; without this nothing is changed.")
@click.pass_obj
def command(invocation: Invocation, /, place: str, reason: str, send: bool, **given: Any) -> int:
    """Send the record of one dead letter with changes, to be handled by its group.

    Without --send, this shows the difference byte for byte and what would be done, and nothing is sent. The record is
    sent as `waitreg dlq redrive` sends it: once, with the next number of the delivery. Its last header WAITREG_EDITED
    names the job. If the dead letter is redriven meanwhile, nothing is sent, and this ends with 1.
    """
    require_reason(reason, send=send)
    place, settings = str(parse_place(place)), invocation.settings()
    with read_tables(settings, invocation.path, "the dead letter") as connection:
        before = find(connection, place)[0].content
    found = review(before, _edited(before, **given))
    for line in _lines(found):
        print(line)
    options = Options(reason, allowed=allowed(given))
    asker = asker_of_command()
    chosen = selection([place], Kind.REDRIVE, options.allowed, datetime.now(UTC))
    run = dry_run(settings, Kind.REDRIVE, chosen, options, asker, found.replacement)
    return begin(settings, run, "send the edited record", send=send)


def _edited(
    before: Content,
    *,
    value: Path | None,
    null_value: bool,
    key: Path | None,
    headers: Sequence[tuple[str, str]],
    without: Sequence[str],
    **_: object,
) -> Content:
    """Return a record with the changes that are given."""
    if value is not None and null_value:
        raise ConfigurationError("--value gives a value, and --null-value takes it away: give one of the two")
    if str(value) == str(key) == _STDIN:
        raise ConfigurationError("standard input has one of --value and --key: give a file for the other")
    wanted = before.value if value is None else bytes_of(value)
    # The bytes that were typed, whatever the locale reads in them.
    given = [(name, os.fsencode(text)) for name, text in headers]
    return Content(
        before.key if key is None else bytes_of(key),
        with_headers(before.headers, given, without),
        None if null_value else wanted,
    )


def bytes_of(file: Path) -> bytes:
    """Return what a file has, or standard input for ``-``.

    Raises:
        ConfigurationError: it can't be read.
    """
    try:
        return sys.stdin.buffer.read() if str(file) == _STDIN else file.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{file} can't be read: {error.strerror}") from error


def _lines(found: Review) -> Iterator[str]:
    yield from found.lines
    for name, before, after in found.sizes:
        if before != after:
            yield f"{name} before: {before}"
            yield f"{name} after:  {after}"
