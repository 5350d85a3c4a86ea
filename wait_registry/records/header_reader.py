"""Reads this system's headers, with an error for each unexpected value."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from wait_registry.errors import DataError
from wait_registry.records import header_names
from wait_registry.records.original import Source
from wait_registry.records.times import parse_utc_ms
from wait_registry.records.wait_id import is_wait_id

MAX_INT32: Final = 2**31 - 1
MAX_INT64: Final = 2**63 - 1
_MAX_DIGITS: Final = 19
_SHOWN_BYTES: Final = 64
# tracestate usually has at most 512 characters; anything much longer isn't trace context.
MAX_TRACE_BYTES: Final = 1024


class SystemHeaders:
    """The headers of one record by name; if a header is repeated the last one counts, as with Kafka's ``lastHeader``.

    Every method returns None if the header is missing, and raises DataError if it can't be read.
    """

    __slots__ = ("_values",)

    def __init__(self, headers: Iterable[tuple[str, bytes | None]] | None) -> None:
        self._values = dict(headers or ())

    def raw(self, name: str) -> bytes | None:
        """Return the bytes; None also for a null header."""
        return self._values.get(name)

    def text(self, name: str) -> str | None:
        """Return UTF-8 text without NUL (which Postgres text can't hold), at least one character."""
        if name not in self._values:
            return None
        value = self._values[name]
        try:
            text = "" if value is None else value.decode()
        except UnicodeDecodeError:
            text = ""
        if not text or "\0" in text:
            raise unreadable(name, value, "UTF-8 text without NUL")
        return text

    def integer(self, name: str, low: int, high: int) -> int | None:
        """Return a decimal number from low to high."""
        if name not in self._values:
            return None
        value = self._values[name]
        digits = b"" if value is None else value.removeprefix(b"-")
        if digits.isdigit() and len(digits) <= _MAX_DIGITS and value is not None:
            number = int(value)
            if low <= number <= high:
                return number
        raise unreadable(name, value, f"decimal text of a number from {low} to {high}")

    def time_ms(self, name: str) -> int | None:
        """Return an ISO 8601 time as ms since the epoch."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return parse_utc_ms(text)
        except DataError as error:
            raise DataError(f"header {name}: {error}") from None

    def choice(self, name: str, allowed: Iterable[str]) -> str | None:
        """Return one of the allowed words."""
        text = self.text(name)
        if text is not None and text not in allowed:
            raise unreadable(name, self._values[name], " or ".join(repr(word) for word in allowed))
        return text

    def wait_id(self, name: str) -> str | None:
        """Return a canonical UUID."""
        text = self.text(name)
        if text is not None and not is_wait_id(text):
            raise unreadable(name, self._values[name], "a UUID in canonical lower-case form")
        return text

    def source(self) -> Source | None:
        """Return where a record that this system delivered again was consumed; all three headers or none."""
        topic = self.text(header_names.SOURCE_TOPIC)
        partition = self.integer(header_names.SOURCE_PARTITION, 0, MAX_INT32)
        offset = self.integer(header_names.SOURCE_OFFSET, 0, MAX_INT64)
        if topic is None and partition is None and offset is None:
            return None
        if topic is None or partition is None or offset is None:
            raise missing("SOURCE_*", "all of topic, partition and offset, or none")
        return Source(topic, partition, offset)

    def trace(self, name: str) -> str | None:
        """Return a trace context header; None if it isn't one, since it only copies an original header."""
        value = self._values.get(name)
        return value.decode("ascii") if is_trace(value) and value is not None else None


def is_trace(value: bytes | None) -> bool:
    """Return whether a header value can be trace context: short, visible ASCII (W3C Trace Context, section 3)."""
    return value is not None and 0 < len(value) <= MAX_TRACE_BYTES and value.isascii() and value.decode().isprintable()


def unreadable(name: str, value: bytes | None, expected: str) -> DataError:
    """Return the error of a header: its name, the beginning of its value, and what was expected."""
    seen = "null" if value is None else repr(value[:_SHOWN_BYTES])
    more = f"... ({len(value)} bytes)" if value is not None and len(value) > _SHOWN_BYTES else ""
    return DataError(f"header {name}: saw {seen}{more}, expected {expected}")


def missing(name: str, expected: str) -> DataError:
    """Return the error of a missing header."""
    return DataError(f"header {name}: missing, expected {expected}")
