"""examples/ordered_accounts: each account's changes are applied in their order, each once."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.integration.examples.conftest import Example
from tests.support.kafka_io import Outgoing


def change(account: str, cents: object) -> Outgoing:
    return Outgoing(json.dumps({"cents": cents}).encode(), account.encode())


def balances(database: Path) -> dict[str, int]:
    with closing(sqlite3.connect(database)) as opened:
        return dict(opened.execute("select name, cents from account").fetchall())


def test_changes_are_applied_in_their_order_and_once(example: Example, tmp_path: Path) -> None:
    database = tmp_path / "accounts.db"
    names = [f"account-{number}" for number in range(8)]
    records = [change(name, cents) for cents in (500, -400, -200, 300, -400) for name in names]
    records += [change("alice", 5), change("alice", "five"), change("alice", 7), Outgoing(b"no JSON", b"bob")]
    records += [change("bob", 1), Outgoing(None, b"bob"), Outgoing(b"{}", None)]
    example.run("ordered_accounts", records, {"ACCOUNTS_DB": str(database)})
    # In another order, the third change is covered or the fifth one isn't.
    assert balances(database) == dict.fromkeys(names, 0) | {"alice": 12, "bob": 1}
    letters = example.topics.read(example.settings.dead_letter.topic)
    assert {letter.value for letter in letters} == {b'{"cents": "five"}', b"no JSON"}
    assert example.stories() == {}, "nothing is registered"
