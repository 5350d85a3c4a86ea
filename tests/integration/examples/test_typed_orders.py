"""The examples of typed orders and of ordered accounts end as their READMEs say."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.integration.examples.conftest import ROOT, Example
from tests.support.http_service import Answer, Call, HttpService
from tests.support.kafka_io import Outgoing

STATUSES = {"good": 201, "refused": 422, "down": 503}


def answer(call: Call) -> Answer:
    """Answer what the order's ID asks for."""
    return Answer(STATUSES[call.json()["order"]])


def record(key: str, **changes: object) -> Outgoing:
    items = [{"article": "tea", "quantity": 2, "price": "4.50"}]
    return Outgoing(json.dumps({"id": key, "status": "placed", "items": items, **changes}).encode(), key.encode())


def test_orders_end_as_the_readme_says(example: Example) -> None:
    records = [
        *(record(name) for name in STATUSES),
        record("cancelled", status="cancelled"),
        record("empty", items=[]),
        Outgoing(None, b"deleted"),
        Outgoing(b"\xff not JSON", b"garbled"),
    ]
    with HttpService(answer) as service:
        example.run("typed_orders", records, {"STOCK_URL": f"{service.address}/reservations"})
    assert example.outcomes() == {
        "good": "done",
        "refused": "dead_lettered",
        "down": "dead_lettered",
        "cancelled": "discarded",
        "empty": "dead_lettered",
        "deleted": "discarded",
        "garbled": "dead_lettered",
    }
    assert {key: letter.text("DLQ_REASON") for key, letter in example.dead_letters().items()} == {
        "refused": "failed",
        "down": "failed",
        "empty": "malformed",
        "garbled": "malformed",
    }
    calls = [call.json() for call in service.calls]
    assert {"order": "good", "wanted": {"tea": 2}} in calls
    assert sorted(call["order"] for call in calls) == ["down", "down", "down", "good", "refused"]


def test_its_own_tests_pass() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "test_orders.py"],
        cwd=ROOT / "examples" / "typed_orders",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert "2 passed" in ended.stdout


def change(account: str, cents: object) -> Outgoing:
    return Outgoing(json.dumps({"cents": cents}).encode(), account.encode())


def test_changes_are_applied_in_their_order_and_once(example: Example, tmp_path: Path) -> None:
    database = tmp_path / "accounts.db"
    names = [f"account-{number}" for number in range(8)]
    records = [change(name, cents) for cents in (500, -400, -200, 300, -400) for name in names]
    records += [change("alice", 5), change("alice", "five"), change("alice", 7), Outgoing(b"no JSON", b"bob")]
    records += [change("bob", 1), Outgoing(None, b"bob"), Outgoing(b"{}", None)]
    example.run("ordered_accounts", records, {"ACCOUNTS_DB": str(database)})
    # In another order, the third change is covered or the fifth one isn't.
    with closing(sqlite3.connect(database)) as opened:
        balances = dict(opened.execute("select name, cents from account").fetchall())
    assert balances == dict.fromkeys(names, 0) | {"alice": 12, "bob": 1}
    letters = example.topics.read(example.settings.dead_letter.topic)
    assert {letter.value for letter in letters} == {b'{"cents": "five"}', b"no JSON"}
    assert example.stories() == {}, "nothing is registered"
