"""The snapshot of the tables remains the same during its export, and every registered header can be read from it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from sweeper.due import MAX_ROW_JSON_BYTES
from sweeper.snapshot import TableSnapshot
from tests.conftest import SettingsFactory
from tests.integration.sweeper.scenario import Scenario, with_server_default
from tests.support.database import Database
from wait_registry.records.headers import MAX_JSON_BYTES, Headers, decode_headers_json, encode_headers_json


@pytest.mark.guarantee("P3.9")
def test_rows_are_read_as_they_were_judged(at: Scenario) -> None:
    """The sink brings a newer registration between a row's judgment and its reading: the row judged is the one read."""
    old = at.wait_record(1)
    (registered,) = at.register([old])
    position = at.show()
    with closing(TableSnapshot(at.settings, 0)) as tables:
        keys = tables.next_keys(10, 1_000_000)
        at.register([at.wait_record(1, expires_in_ms=600_000, wait_id=old.wait_id, delivery=2)])
        at.show()

        ((row,), unreadable) = tables.rows(keys)

    assert unreadable == []
    assert tables.progress is not None
    assert tables.progress.next_offset == position
    assert [(key.wait_id, key.wait_offset) for key in keys] == [(old.wait_id, registered.offset)]
    assert (row.wait_offset, row.record.delivery) == (registered.offset, 1)
    assert row.record.expires_at_ms == old.expires_at_ms


def test_the_snapshot_outlasts_the_servers_time_limits(at: Scenario) -> None:
    at.due()
    limited = with_server_default(at.settings, "idle_in_transaction_session_timeout=60000")
    shown: Any = {"limit": "select current_setting('idle_in_transaction_session_timeout')"}
    with closing(TableSnapshot(limited, 0)) as tables:
        assert tables.ask(shown, "limit") == [("0",)]


REPEATED = 2_000


@pytest.mark.parametrize(
    "header", [("", None), ("", b""), ("\0", None), ("\x01", b""), ('"', None), ("\u20ac", b"\xff"), ("\ud800", None)]
)
def test_any_header_takes_less_than_twice_its_room(
    header: tuple[str, bytes | None], prepared: SettingsFactory, database: Database
) -> None:
    headers: Headers = (header,) * REPEATED
    registered = encode_headers_json(headers)
    [(printed,)] = database.rows(prepared(), "select %s::jsonb::text", registered.decode())
    assert len(printed.encode()) / len(registered) <= MAX_ROW_JSON_BYTES / MAX_JSON_BYTES
    assert decode_headers_json(printed.encode(), MAX_ROW_JSON_BYTES) == headers
