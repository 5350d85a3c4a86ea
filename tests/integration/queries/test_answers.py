"""Each incident query answers its question rightly on a known incident, in `waitreg query` and in plain psql alike."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.integration.queries.conftest import Ask
from wait_registry.postgres.query_file import query_names


class Case(NamedTuple):
    """What a query answers: the columns that are looked at, and their rows in order."""

    name: str
    parameters: tuple[str, ...]
    columns: list[str]
    rows: list[list[Any]]


def cells(line: str) -> list[Any]:
    """Return a line's cells: numbers and null as in JSON, everything else is text."""
    words = line.strip().split(" ; ")
    return [json.loads(word) if re.fullmatch(r"-?[\d.]+|null", word) else word for word in words]


def cases() -> list[Case]:
    """Read answers.txt: blocks of a query as it is typed, the columns, then the rows."""
    found = []
    for block in Path(__file__).with_name("answers.txt").read_text("utf-8").split("\n\n"):
        typed, columns, *rows = block.strip().splitlines()
        name, *parameters = shlex.split(typed)
        found.append(Case(name, tuple(parameters), cells(columns), [cells(row) for row in rows]))
    return found


CASES = cases()
# Of these the number of rows or their order depends on the time of day, or on the server: see the tests of their own.
LOOSE = {"growth_per_day", "sizes"}


# What moves from one minute to the next, so that two questions have two answers.
MOVING = {"last_hour", "by_minute"}


def identity(case: Case) -> str:
    return " ".join([case.name, *case.parameters])


def test_every_query_has_a_case() -> None:
    assert {case.name for case in CASES} == set(query_names())


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in LOOSE], ids=identity)
def test_the_answer_is_right(case: Case, ask: Ask) -> None:
    rows = [json.loads(line) for line in ask(case.name, *case.parameters, "--json").splitlines()]
    assert [[row[column] for column in case.columns] for row in rows] == case.rows


def test_rows_are_counted_by_day(ask: Ask) -> None:
    found: dict[str, int] = {}
    for row in map(json.loads, ask("growth_per_day", "days=2", "--json").splitlines()):
        found[row["table_name"]] = found.get(row["table_name"], 0) + row["rows"]
        assert row["about"].split()[1] in {"bytes", "kB"}
    assert found == {"dead_letter": 7, "late_outcome": 1, "quarantine": 3, "sweep": 5, "wait": 4}


def test_the_last_hour_of_a_group_is_counted_by_minute(ask: Ask) -> None:
    rows = [json.loads(line) for line in ask("groups_now", "--json").splitlines()]
    for row in rows:
        assert len(row["by_minute"]) == 60
        assert sum(row["by_minute"]) == row["last_hour"]
    # Of the two that are 50 and 40 minutes old, the first minute of the hour is at the left.
    late, lost = (number for number, count in enumerate(rows[0]["by_minute"]) if count and number > 4)
    assert (late, lost - late) in ((9, 10), (8, 10), (7, 10), (6, 10), (5, 10))


def test_sizes_are_those_of_our_tables_largest_first(ask: Ask) -> None:
    rows = [json.loads(line) for line in ask("sizes", "--json").splitlines()]
    assert {row["table_name"] for row in rows} == {
        "dead_letter",
        "wait",
        "quarantine",
        "late_outcome",
        "sweep",
        "sink_progress",
    }
    sizes = [row["total_bytes"] for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    assert min(sizes) > 0


def test_the_views_age_is_that_of_its_position(ask: Ask) -> None:
    behind = [json.loads(line)["behind"] for line in ask("sink_freshness", "--json").splitlines()]
    assert behind[0] - behind[1] == pytest.approx(300, abs=0.01)


@pytest.mark.parametrize("case", {case.name: case for case in reversed(CASES)}.values(), ids=identity)
def test_plain_psql_gives_the_same_answer(case: Case, ask: Ask, ask_psql: Callable[..., list[list[str]]]) -> None:
    plain = ask_psql(case.name, *case.parameters)
    ours = [json.loads(line) for line in ask(case.name, *case.parameters, "--json").splitlines()]
    assert len(ours) + 1 == len(plain) > 1
    for our_row, plain_row in zip(ours, plain[1:], strict=True):
        assert list(our_row) == plain[0]
        pairs = zip(our_row, our_row.values(), plain_row, strict=True)
        assert [column for column, our, cell in pairs if column not in MOVING and not same(our, cell)] == [], plain_row


def same(our: object, plain: str) -> bool:
    """Return whether two cells show one value; what grows between the two questions (ages) only has to be one."""
    if isinstance(our, float) and re.fullmatch(r"-?(\d+ days? )?-?\d\d:\d\d:\d\d(\.\d+)?", plain):
        return True
    if isinstance(our, dict | list | int | float):
        return bool(json.loads(plain) == our)
    if isinstance(our, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\S+", our):
        return abs(datetime.fromisoformat(our) - datetime.fromisoformat(plain)) < timedelta(seconds=5)
    return ("" if our is None else our) == plain
