"""`waitreg dlq list`, `show` and `diff` on an incident: conditions, pages, everything of one dead letter, safely."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.queries.conftest import Run
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from wait_registry.postgres.connection import connect
from wait_registry.records.headers import encode_headers_json
from wait_registry.settings.tree import Settings

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


HOSTILE = b'{"text": "\x1b[2J\xe2\x80\xae"}'
HEADERS = (("trace", b"\x00\xff"), ("trace", None), ("note", b"\x1b[31m"))


@pytest.fixture
def letter(incident: Settings) -> Callable[..., str]:
    """Add a dead letter; returns its place."""

    def add(
        value: bytes | None, offset: int, record: tuple[str, int, int] = ("orders", 3, 7), key: bytes = b"k"
    ) -> str:
        with connect(incident.postgres, autocommit=True, application_name="test") as connection:
            connection.execute(
                'insert into dead_letter (topic, partition, "offset", dead_letter_time, reason, error_class, '
                "error_message, error_stacktrace, wait_expiration_uuid, idempotency_key, original_topic, "
                "original_partition, original_offset, key, headers, body) values ('shown', 0, %s, now() - "
                "interval '8 days', 'failed', 'KeyError', %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                (
                    offset,
                    "\x1b[2J",
                    "line 1\n\x1bline 2",
                    f"s-{offset}",
                    f"s-{offset}",
                    *record,
                    key,
                    encode_headers_json(HEADERS).decode(),
                    value,
                ),
            )
        return f"shown:0:{offset}"

    return add


def test_it_shows_all_and_nothing_that_a_terminal_obeys(run: Run, letter: Callable[..., str]) -> None:
    shown = run("dlq", "show", letter(HOSTILE, 1)).output
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    for line in (
        "dead letter shown:0:1, failed, at ",
        "  record          orders:3:7",
        r"error: KeyError: \x1b[2J",
        r"  trace = \x00ff",
        "  trace = null",
        r"  note = \x1b[31m",
        r'  {"text": "\x1b[2J\u202e"}',
        r"  \x1bline 2",
        "was it done? Probably not: the handler failed.",
    ):
        assert line in shown


def test_a_wait_id_shows_the_deliveries_of_the_record(run: Run) -> None:
    shown = run("dlq", "show", "d-newer").output
    assert "dead letter dlq:0:2, failed" in shown
    assert "consumed at     orders.billing.retry.1m:2:4" in shown
    assert "deliveries of this record:" in shown


def test_what_ended_after_its_deadline_is_said_to_be_done(run: Run) -> None:
    assert "was it done? Yes: after its deadline it ended as done" in run("dlq", "show", "d-late").output


def test_a_value_is_written_byte_for_byte_over_no_file(run: Run, letter: Callable[..., str], tmp_path: Path) -> None:
    file, place = tmp_path / "value", letter(bytes(range(256)), 2)
    run("dlq", "show", place, "--body", str(file))
    assert file.read_bytes() == bytes(range(256))
    assert "name a new file" in run("dlq", "show", place, "--body", str(file), code=2).errors


def test_the_input_record_is_the_same_until_it_is_gone(run: Run, letter: Callable[..., str], topics: Topics) -> None:
    topic = topics.create("compared", 1)
    topics.produce(topic, [Outgoing(b'{"id": 1}', key=b"k", headers=HEADERS)])
    assert run("dlq", "diff", letter(b'{"id": 1}', 3, (topic, 0, 0)), "--input").output == ""
    differs = run("dlq", "diff", letter(b'{"id": 2}', 4, (topic, 0, 0)), "--input", code=1).output
    assert differs.endswith("\n$.id: 2 -> 1\n")
    assert "isn't in its topic" in run("dlq", "diff", letter(b"", 5, (topic, 0, 1)), "--input", code=2).errors


def test_two_dead_letters_and_a_file_are_compared(run: Run, letter: Callable[..., str], tmp_path: Path) -> None:
    left, right = letter(b"abc", 6), letter(b"abd", 7, key=b"l")
    assert "key: 1 bytes, 1 bytes; the first difference is at byte 0" in run("dlq", "diff", left, right, code=1).output
    (tmp_path / "value").write_bytes(b"abc")
    assert run("dlq", "diff", left, "--file", str(tmp_path / "value")).output == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["show", "shown:0:99"], "the tables have no dead letter 'shown:0:99'"),
        (["show", "a:b:c"], "'a:b:c' is no place of a record"),
        (["diff", "dlq:0:2"], "one of the three"),
        (["diff", "dlq:0:2", "--file", "nowhere"], "nowhere can't be read"),
    ],
)
def test_what_cannot_be_shown_is_refused(run: Run, arguments: list[str], says: str) -> None:
    assert says in run("dlq", *arguments, code=2).errors
