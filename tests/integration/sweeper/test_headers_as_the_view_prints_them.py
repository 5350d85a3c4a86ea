"""P4: what a processor may register of headers, a sweep can read again: the view prints them longer, never twice so."""

from __future__ import annotations

import pytest

from sweeper.due import MAX_ROW_JSON_BYTES
from tests.conftest import SettingsFactory
from tests.support.database import Database
from wait_registry.records.headers import MAX_JSON_BYTES, Headers, decode_headers_json, encode_headers_json

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
