"""The cursor of a page of dead letters is read as it is shown."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from redrive.listing import Cursor, parse_cursor
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Place


def test_a_cursor_is_read_as_it_is_shown() -> None:
    cursor = Cursor(datetime(2026, 11, 29, 7, 5, 1, 123_456, tzinfo=UTC), Place("orders.dlq", 2, 41))
    assert str(cursor) == "2026-11-29T07:05:01.123456+00:00,orders.dlq:2:41"
    assert parse_cursor(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text", ["", "yesterday,dlq:0:1", "2026-11-29T07:05:01+00:00", "2026-11-29T07:05:01+00:00,dlq"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_cursor(text)
