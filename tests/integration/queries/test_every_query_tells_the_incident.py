"""Each incident query answers its question rightly on a known incident, in `waitreg query` and in plain psql alike."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pytest

from tests.integration.queries.conftest import Ask
from wait_registry.cli.query_file import load_query, query_names


class Case(NamedTuple):
    """What a query answers: the columns that are looked at, and their rows in order."""

    name: str
    parameters: tuple[str, ...]
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


MISSING = "header WAIT_EXPIRATION_TIME: missing"
LATE = "came after another outcome, or after the expiry"

CASES = [
    Case(
        "stuck_now",
        (),
        ("consumer_group", "original_topic", "instance", "registrations", "overdue", "oldest_wait_id"),
        [
            ("billing", "orders", "host-1-a", 2, 1, "w-binary"),
            ("shipping", "refunds", "host-3-c", 1, 0, "w-null"),
        ],
    ),
    Case("stuck_now", ("minutes=25",), ("registrations", "oldest_wait_id"), [(1, "w-overdue")]),
    Case(
        "waiting_by_group",
        (),
        ("consumer_group", "records", "overdue", "topics", "instances", "highest_delivery"),
        [("billing", 3, 1, 1, 2, 2), ("shipping", 1, 0, 1, 1, 1)],
    ),
    Case(
        "waiting_by_topic",
        (),
        ("original_topic", "consumer_group", "records", "overdue", "bodies"),
        [("orders", "billing", 3, 1, "12 bytes"), ("refunds", "shipping", 1, 0, None)],
    ),
    Case(
        "waiting_by_partition",
        (),
        ("original_topic", "original_partition", "consumer_group", "records", "lowest_offset", "highest_offset"),
        [
            ("orders", 0, "billing", 2, 100, 101),
            ("orders", 1, "billing", 1, 50, 50),
            ("refunds", 0, "shipping", 1, 9, 9),
        ],
    ),
    Case(
        "waiting_by_instance",
        (),
        ("instance", "consumer_group", "records", "overdue"),
        [("host-1-a", "billing", 2, 1), ("host-2-b", "billing", 1, 0), ("host-3-c", "shipping", 1, 0)],
    ),
    Case(
        "expiring_soon",
        (),
        ("consumer_group", "instance", "records", "policy", "max_deliveries", "dead_letter_topic"),
        [
            ("billing", "host-1-a", 1, "dlq", 1, "orders.dlq"),
            ("shipping", "host-3-c", 1, "dlq", 1, "refunds.dlq"),
        ],
    ),
    Case("expiring_soon", ("minutes=6",), ("consumer_group", "records"), [("billing", 1)]),
    Case(
        "overdue",
        (),
        ("wait_topic", "wait_partition", "records", "last_result", "unsendable", "skipped"),
        [("wait", 0, 1, "partial", 0, "the position is too old")],
    ),
    Case(
        "oldest_waits",
        (),
        ("wait_id", "key", "original_topic", "original_partition", "original_offset", "delivery"),
        [
            ("w-overdue", "k-1", "orders", 0, 100, 1),
            ("w-binary", "\\x00ff", "orders", 0, 101, 1),
            ("w-null", None, "refunds", 0, 9, 1),
            ("w-again", "k-1", "orders", 1, 50, 2),
        ],
    ),
    Case("oldest_waits", ("rows=1",), ("wait_id",), [("w-overdue",)]),
    Case(
        "instance_in_flight",
        ("instance=host-1",),
        ("state", "wait_id", "original_topic", "original_partition", "original_offset", "key", "instance"),
        [
            ("waiting", "w-binary", "orders", 0, 101, "\\x00ff", "host-1-a"),
            ("overdue", "w-overdue", "orders", 0, 100, "k-1", "host-1-a"),
            ("exported", "d-lost", "orders", 2, 77, "k-3", "host-1-a"),
        ],
    ),
    Case("instance_in_flight", ("instance=host-0",), ("state", "wait_id"), [("exported, finished late", "d-late")]),
    Case(
        "record_by_wait_id",
        ("id=d-late",),
        ("event", "original_offset", "instance", "log_topic", "log_partition", "log_offset", "detail"),
        [
            ("dead letter: expired, finished late: done", 92, "host-0-z", "dlq", 0, 3, "WaitExpired: no outcome"),
            ("late tombstone: done", None, None, "wait", 0, 6, LATE),
        ],
    ),
    Case("record_by_wait_id", ("id= D-Lost ",), ("event",), [("dead letter: expired",)]),
    Case(
        "record_by_wait_id",
        ("id=00000000-0000-8000-8000-000000000002",),
        ("event", "log_topic", "log_partition", "log_offset", "detail"),
        [("quarantined", "wait", 3, 2, MISSING)],
    ),
    Case(
        "record_by_key",
        ("key=k-1",),
        ("event", "wait_id", "original_partition", "original_offset", "consumer_group"),
        [
            ("dead letter: failed", "d-long-ago", 0, 10, "billing"),
            ("dead letter: failed", "d-older", 0, 90, "billing"),
            ("dead letter: blocked", "d-blocked", 0, 8, "billing"),
            ("dead letter: blocked", "d-group", 0, 91, "shipping"),
            ("dead letter: failed", "d-newer", 0, 91, "billing"),
            ("waiting", "w-overdue", 0, 100, "billing"),
            ("waiting", "w-again", 1, 50, "billing"),
        ],
    ),
    Case("record_by_key", ("key=\\x00FF",), ("event", "wait_id"), [("waiting", "w-binary")]),
    Case("record_by_key", ("key=\\x6b2d33",), ("event", "wait_id"), [("dead letter: expired", "d-lost")]),
    Case(
        "record_by_key",
        ("key=k-2",),
        ("event", "wait_id"),
        [("dead letter: expired, finished late: done", "d-late"), ("late tombstone: done", "d-late")],
    ),
    Case(
        "record_by_key",
        ("key=k-9",),
        ("event", "wait_id", "detail"),
        [("quarantined", "00000000-0000-8000-8000-000000000001", MISSING)],
    ),
    Case(
        "record_by_offset",
        ("topic=orders", "partition=0", "offset=100"),
        ("event", "wait_id", "log_topic", "log_partition", "log_offset"),
        [("waiting", "w-overdue", "wait", 0, 7)],
    ),
    Case(
        "record_by_offset",
        ("topic=orders", "partition=2", "offset=77"),
        ("event", "wait_id", "log_topic", "log_partition", "log_offset"),
        [("dead letter: expired", "d-lost", "dlq", 0, 4)],
    ),
    Case(
        "record_by_offset",
        ("topic=orders", "partition=3", "offset=33"),
        ("event", "wait_id"),
        [("quarantined", "00000000-0000-8000-8000-000000000001")],
    ),
    Case("record_by_offset", ("topic=refunds", "partition=0", "offset=100"), ("event",), []),
    Case(
        "record",
        ("topic=orders", "partition=0", "offset=100"),
        ("event", "consumer_group", "wait_id"),
        [("waiting", "billing", "w-overdue")],
    ),
    Case(
        "record",
        ("topic=orders", "partition=0", "offset=91"),
        ("event", "consumer_group", "wait_id"),
        [("dead letter: blocked", "shipping", "d-group"), ("dead letter: failed", "billing", "d-newer")],
    ),
    Case(
        "record",
        ("topic=orders", "partition=0", "offset=89"),
        ("event", "consumer_group", "original_offset", "detail"),
        [
            ("consumed", "billing", 89, "this group registered offset 90 of the partition"),
            ("consumed", "shipping", 89, "this group registered offset 91 of the partition"),
        ],
    ),
    Case("record", ("topic=orders", "partition=7", "offset=1"), ("event", "original_partition"), [("no trace", 7)]),
    Case(
        "record",
        ("key=k-2",),
        ("event", "wait_id"),
        [("dead letter: expired, finished late: done", "d-late")],
    ),
    Case("record", ("key=4711",), ("event", "detail"), [("no trace", "no row of the tables names it")]),
    Case(
        "dead_letters",
        ("rows=2", "group=billing"),
        ("reason", "error_message", "original_offset", "wait_id"),
        [("expired", "no outcome either", 77, "d-lost"), ("expired", "no outcome", 92, "d-late")],
    ),
    Case(
        "dead_letters",
        ("reason=failed",),
        ("error_class", "key", "wait_id"),
        [("ValueError", "k-1", "d-newer"), ("ValueError", "k-1", "d-older")],
    ),
    Case(
        "dead_letters_by_reason",
        (),
        ("reason", "error_class", "consumer_group", "dead_letters", "finished_late"),
        [
            ("expired", "WaitExpired", "billing", 2, 1),
            ("failed", "ValueError", "billing", 2, 0),
            (None, None, None, 1, 0),
            ("blocked", "Blocked", "billing", 1, 0),
            ("blocked", "Held", "shipping", 1, 0),
        ],
    ),
    Case(
        "dead_letters_by_reason",
        ("hours=1",),
        ("reason", "dead_letters", "latest_message"),
        [
            ("expired", 2, "no outcome either"),
            (None, 1, None),
            ("blocked", 1, "of another topic"),
            ("blocked", 1, "of another group"),
            ("failed", 1, 'newer: 100% "é"'),
        ],
    ),
    Case(
        "dead_letters_over_time",
        ("minutes=1", "hours=1"),
        ("reason", "error_class", "dead_letters", "finished_late"),
        [
            (None, None, 1, 0),
            ("expired", "WaitExpired", 1, 0),
            ("expired", "WaitExpired", 1, 1),
            ("blocked", "Blocked", 1, 0),
            ("blocked", "Held", 1, 0),
            ("failed", "ValueError", 1, 0),
        ],
    ),
    Case(
        "dead_letters_over_time",
        ("minutes=100000000",),
        ("reason", "dead_letters"),
        [("expired", 2), ("failed", 2), ("blocked", 1), ("blocked", 1), (None, 1)],
    ),
    Case(
        "poison_keys",
        (),
        ("key", "consumer_group", "original_topic", "dead_letters", "latest_reason", "latest_message", "waiting"),
        [("k-1", "billing", "orders", 3, "failed", 'newer: 100% "é"', 2)],
    ),
    Case("poison_keys", ("days=1", "times=2"), ("key", "dead_letters"), [("k-1", 2)]),
    Case(
        "finished_late",
        (),
        ("later_by", "outcome", "wait_id", "original_offset", "key", "instance"),
        [(60.0, "done", "d-late", 92, "k-2", "host-0-z")],
    ),
    Case(
        "burst_timeline",
        (),
        ("still_waiting", "failed", "expired", "other_dead_letters"),
        [
            (0, 1, 0, 2),
            (0, 0, 1, 0),
            (0, 0, 1, 0),
            (1, 0, 0, 0),
            (1, 0, 0, 0),
            (0, 0, 0, 1),
            (1, 0, 0, 0),
            (1, 0, 0, 0),
        ],
    ),
    Case("burst_timeline", ("from=-infinity", "to=yesterday"), ("failed", "expired"), [(1, 0)]),
    Case(
        "last_sweeps",
        (),
        ("instance", "result", "due", "exported", "superseded", "skipped"),
        [
            ("sweeper-2", "skipped", 0, 0, 0, "another sweep"),
            ("sweeper-1", "partial", 1, 0, 0, "another sweeper took over | the position is too old"),
            ("sweeper-1", "done", 2, 1, 1, None),
        ],
    ),
    Case(
        "quarantined",
        (),
        ("topic", "error", "records", "latest_partition", "latest_offset", "latest_key"),
        [
            ("wait", MISSING, 2, 3, 2, "00000000-0000-8000-8000-000000000002"),
            ("wait", "the key is no wait id", 1, 3, 3, "\\xff"),
        ],
    ),
    Case("sink_freshness", (), ("topic", "partition", "next_offset"), [("wait", 0, 10), ("wait", 1, 5)]),
    Case(
        "growth_per_day",
        ("days=2",),
        ("table_name", "rows"),
        [("dead_letter", 7), ("late_outcome", 1), ("quarantine", 3), ("sweep", 5), ("wait", 4)],
    ),
    Case("sizes", (), ("table_name",), [("dead_letter",), ("wait",), ("quarantine",), ("late_outcome",)]),
]
# Of these the number of rows or their order depends on the time of day, or on the server: see the tests of their own.
LOOSE = {"growth_per_day", "sizes"}


def identity(case: Case) -> str:
    return " ".join([case.name, *case.parameters])


def test_every_query_has_a_case() -> None:
    assert {case.name for case in CASES} == set(query_names())


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in LOOSE], ids=identity)
def test_the_answer_is_right(case: Case, ask: Ask) -> None:
    rows = [json.loads(line) for line in ask(case.name, *case.parameters, "--json").splitlines()]
    assert [tuple(row[column] for column in case.columns) for row in rows] == case.rows


def test_rows_are_counted_by_day(ask: Ask) -> None:
    found: dict[str, int] = {}
    for row in map(json.loads, ask("growth_per_day", "days=2", "--json").splitlines()):
        found[row["table_name"]] = found.get(row["table_name"], 0) + row["rows"]
        assert row["about"].split()[1] in {"bytes", "kB"}
    assert found == {"dead_letter": 7, "late_outcome": 1, "quarantine": 3, "sweep": 5, "wait": 4}


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


def test_a_table_ends_with_what_to_do(ask: Ask) -> None:
    shown = ask("overdue")
    assert "the position is too old" in shown
    assert shown.rstrip().endswith(load_query("overdue").advice)


@pytest.mark.parametrize("case", {case.name: case for case in reversed(CASES)}.values(), ids=identity)
def test_plain_psql_gives_the_same_answer(case: Case, ask: Ask, ask_psql: Callable[..., list[list[str]]]) -> None:
    plain = ask_psql(case.name, *case.parameters)
    ours = list(csv.reader(ask(case.name, *case.parameters, "--csv").splitlines()))
    assert ours[0] == plain[0]
    assert len(ours) == len(plain) > 1
    for our_row, plain_row in zip(ours[1:], plain[1:], strict=True):
        assert [same(*pair) for pair in zip(our_row, plain_row, strict=True)] == [True] * len(our_row), plain_row


def same(our: str, plain: str) -> bool:
    """Return whether two cells show one value; what grows between the two questions (ages) only has to be one."""
    if re.fullmatch(r"\d{4}-\d\d-\d\dT\S+", our):
        return abs(datetime.fromisoformat(our) - datetime.fromisoformat(plain)) < timedelta(seconds=5)
    if re.fullmatch(r"-?(\d+ days? )?\d\d:\d\d:\d\d", our):
        return re.fullmatch(r"-?(\d+ days? )?-?\d\d:\d\d:\d\d(\.\d+)?", plain) is not None
    return our == plain
