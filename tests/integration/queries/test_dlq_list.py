"""`waitreg dlq list` on an incident: conditions, pages, counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.queries.conftest import Run
from wait_registry.settings.root import Settings

LONG = "since=365d"
Listed = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def listed(run: Run) -> Listed:
    def ask(*arguments: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in run("dlq", "list", "--json", *arguments, LONG).output.splitlines()]

    return ask


def test_all_dead_letters_are_listed_the_newest_first(listed: Listed, incident: Settings) -> None:
    rows = listed()
    assert rows
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)


def test_pages_follow_one_another_without_gaps(run: Run, listed: Listed) -> None:
    everything = [row["place"] for row in listed()]
    pages: list[str] = []
    after: list[str] = []
    while True:
        printed = run("dlq", "list", "--json", "--rows", "2", LONG, *after)
        pages += [json.loads(line)["place"] for line in printed.output.splitlines()]
        more = [line for line in printed.errors.splitlines() if line.startswith("more: ")]
        if not more:
            break
        after = ["--after", more[0].split("'")[1]]
    assert pages == everything


def test_counts_add_up_to_the_list(listed: Listed) -> None:
    for by in ("reason", "error,topic", "hour", "group,instance,dlq"):
        counted = listed("--by", by)
        assert sum(row["dead_letters"] for row in counted) == len(listed())
        assert set(by.split(",")) <= set(counted[0])


def test_each_row_can_be_found_by_what_it_shows(listed: Listed) -> None:
    for row in listed():
        topic, partition, offset = row["record"].rsplit(":", 2) if row["record"] else ("", "", "")
        asked = [f"reason={row['reason']}"]
        asked += [
            f"{name}={row[name]}" for name in ("group", "error", "wait_id", "delivery") if row[name] not in (None, "")
        ]
        asked += [f"topic={topic}", f"partition={partition}", f"offset={offset}"] if topic else []
        assert row in listed(*asked)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("error=*Error", lambda row: (row["error"] or "").endswith("Error")),
        ("error!=*Error", lambda row: not (row["error"] or "").endswith("Error")),
        ("message~4", lambda row: "4" in (row["message"] or "")),
        ("group!=orders", lambda row: row["group"] != "orders"),
        ("delivery>=2", lambda row: (row["delivery"] or 0) >= 2),
    ],
)
def test_a_condition_chooses_what_it_says(listed: Listed, condition: str, holds: Callable[[Any], bool]) -> None:
    assert listed(condition) == [row for row in listed() if holds(row)]


def test_the_conditions_in_effect_are_printed(run: Run) -> None:
    assert "conditions: reason=failed since=2" in run("dlq", "list", "reason=failed").output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--by", "color"],
            "counted by state,reason,error,topic,group,instance,dlq,message,delivery,hour, not by 'color'",
        ),
        (["--by", "reason", "--after", "2026-11-27T00:00:00Z,a:0:1"], "give one of the two"),
        (["--after", "here"], "'here' is no cursor"),
        (["grup=a"], "did you mean group?"),
    ],
)
def test_what_cannot_be_asked_is_refused(run: Run, arguments: list[str], says: str) -> None:
    assert says in run("dlq", "list", *arguments, code=2).errors
