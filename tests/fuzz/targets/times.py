"""Times: any text is one or refused; what is written reads back."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz.target import Target
from tests.fuzz.vectors import inputs
from wait_registry.errors import DataError
from wait_registry.records.times import format_utc_ms, parse_utc_ms


def _read(data: bytes) -> int | None:
    try:
        return parse_utc_ms(data.decode("utf-8", "replace"))
    except DataError as error:
        assert len(str(error)) < 1000, "a refusal that quotes its input"
        return None


def _check(data: bytes) -> None:
    time_ms = _read(data)
    if time_ms is not None:
        assert parse_utc_ms(format_utc_ms(time_ms)) == time_ms, "not as it was written"


def _seeds() -> Iterator[bytes]:
    for text in inputs("times", "parse"):
        yield text.encode()
    # The borders of the calendar, and of what other clients can write.
    yield from (b"294277-01-01T00:00:00Z", b"infinity", b"0001-01-01T00:00:00+00:01", b"9999-12-31T23:59:59-00:01")


TARGET = Target("times", _read, _check, _seeds, (b"T00:00", b"Z", b"+18:00", b"-00:00:01", b"[UTC]", b"-02-29T"))
