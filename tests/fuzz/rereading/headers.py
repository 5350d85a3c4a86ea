"""This system's own headers of a record: what each may hold, by regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.fuzz.rereading.headers_json import Refused
from tests.fuzz.rereading.times import reread_time_ms

_INTEGER = re.compile(rb"-?[0-9]{1,19}")
_WAIT_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
INT31 = (0, 2**31 - 1)
INT63 = (0, 2**63 - 1)
INT64 = (-(2**63), 2**63 - 1)
ATTEMPTS = (1, 2**31 - 1)


class OwnHeaders:
    """Of headers with one name the last counts; every method raises `Refused` for what can't stand there."""

    def __init__(self, headers: Iterable[tuple[str, bytes | None]]) -> None:
        self.values: dict[str, bytes | None] = {}
        for name, value in headers:
            self.values[name] = value

    def text(self, name: str) -> str | None:
        """Return text, None where the header is missing."""
        if name not in self.values:
            return None
        value = self.values[name]
        try:
            text = (value or b"").decode()
        except UnicodeDecodeError:
            raise Refused from None
        if text == "" or "\0" in text:
            raise Refused
        return text

    def number(self, name: str, bounds: tuple[int, int]) -> int | None:
        """Return a number within bounds, both included; None where the header is missing."""
        if name not in self.values:
            return None
        value = self.values[name]
        if value is None or not _INTEGER.fullmatch(value) or not bounds[0] <= int(value) <= bounds[1]:
            raise Refused
        return int(value)

    def word(self, name: str, *allowed: str) -> str | None:
        """Return one of the words, None where the header is missing."""
        text = self.text(name)
        if text is not None and text not in allowed:
            raise Refused
        return text

    def time_ms(self, name: str) -> int | None:
        """Return ms since the epoch, None where the header is missing."""
        text = self.text(name)
        if text is None:
            return None
        time_ms = reread_time_ms(text)
        if time_ms is None:
            raise Refused
        return time_ms

    def wait_id(self, name: str) -> str | None:
        """Return a wait id, None where the header is missing."""
        text = self.text(name)
        if text is not None and not is_wait_id(text):
            raise Refused
        return text


def is_wait_id(text: str) -> bool:
    """Tell whether a text is a canonical UUID."""
    return _WAIT_ID.fullmatch(text) is not None
