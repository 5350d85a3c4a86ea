"""The snapshot of the tables remains the same during its export, and every registered header can be read from it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from pydantic import SecretStr

from sweeper.due import MAX_ROW_JSON_BYTES
from sweeper.snapshot import TableSnapshot
from tests.conftest import SettingsFactory
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.support.database import Database
from wait_registry.records.headers import MAX_JSON_BYTES, Headers, decode_headers_json, encode_headers_json


@pytest.mark.guarantee("P3.9")
def test_rows_are_read_as_they_were_judged(scenario: ScenarioFactory) -> None:
    """The sink brings a newer registration between a row's judgment and its reading: the row judged is the one read."""
    at = scenario()
    old = at.wait_record(1)
    (registered,) = at.register([old])
    position = at.show()
    with closing(TableSnapshot(at.settings, 0)) as view:
        keys = view.next_keys(10, 1_000_000)
        at.register([at.wait_record(1, expires_in_ms=600_000, wait_id=old.wait_id, delivery=2)])
        at.show()

        ((row,), unreadable) = view.rows(keys)

    assert unreadable == []
    assert view.progress is not None
    assert view.progress.next_offset == position
    assert [(key.wait_id, key.wait_offset) for key in keys] == [(old.wait_id, registered.offset)]
    assert (row.wait_offset, row.record.delivery) == (registered.offset, 1)
    assert row.record.expires_at_ms == old.expires_at_ms


def test_the_snapshot_outlasts_the_server_s_time_limits(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()
    url = at.settings.postgres.url.get_secret_value()
    limited = f"{url}{'&' if '?' in url else '?'}options=-c%20idle_in_transaction_session_timeout%3D60000"
    postgres = at.settings.postgres.model_copy(update={"url": SecretStr(limited)})
    view = TableSnapshot(at.settings.model_copy(update={"postgres": postgres}), 0)
    try:
        shown: Any = {"limit": "select current_setting('idle_in_transaction_session_timeout')"}
        assert view.ask(shown, "limit") == [("0",)]
    finally:
        view.close()


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
