"""docs/incident.md: its commands are run again and their outputs replaced; its prose is written by hand."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

MAX_ROWS = 6
HEADER_LINES = 2
MAX_FIELD_LINES = 40
LOCAL_PATH = re.compile(r'File "/[^"]*?/((?:processor/|wait_registry/)?[a-z_]+\.py)"')
ROW_COUNT = re.compile(r"\(\d+ rows?\)")
COMMAND = re.compile(r"```\n\$ waitreg query (?P<name>\w+)(?P<parameters>[^\n]*)\n.*?\n```", re.DOTALL)


def answered_again(page: str, facts: Mapping[str, str], ask: Callable[[str, Sequence[str]], str]) -> str:
    """Return the page with the output that each of its queries has now.

    Args:
        page: the page of an earlier incident.
        facts: values of the parameters that name records of this incident.
        ask: returns the output of a query with parameters.
    """

    def answer(command: re.Match[str]) -> str:
        given = (parameter.partition("=") for parameter in command["parameters"].split())
        parameters = [f"{key}={facts.get(key, value)}" for key, _, value in given]
        shown = " ".join(["waitreg query", command["name"], *parameters])
        return f"```\n$ {shown}\n{_shortened(ask(command['name'], parameters))}\n```"

    return COMMAND.sub(answer, page)


def _shortened(output: str) -> str:
    # The product's folder on this machine does not belong on the page.
    lines = LOCAL_PATH.sub(r'File "\1"', output).splitlines()
    # Below the rows: their number, and the time of the tables. A field may hold blank lines.
    end = next(number for number, line in enumerate(lines) if ROW_COUNT.fullmatch(line))
    rows, below = lines[:end], "\n".join(lines[end:]).split("\n\n")[0]
    most = MAX_FIELD_LINES if rows[0].startswith("-- row") else HEADER_LINES + MAX_ROWS
    if len(rows) > most:
        rows = [*rows[:most], f"... {len(rows) - most} more"]
    return "\n".join([*rows, below])
