"""Headers as this project's own format has them, read without the product's codec: strictly, since we wrote them."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

Headers = Sequence[tuple[str, bytes | None]]

OLDEST_MS: Final = -(2**63)
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = re.compile(rb"0|-?[1-9][0-9]{0,18}")


class UnreadableError(ValueError):
    """What stands there isn't what the format says; the message says what."""


class Named:
    """Headers by name, each of which stands there once."""

    def __init__(self, headers: Headers, known: Iterable[str]) -> None:
        """Take the headers with known names; raise UnreadableError when one comes twice."""
        wanted = frozenset(known)
        self._values: dict[str, bytes | None] = {}
        for name, value in headers:
            if name not in wanted:
                continue
            if name in self._values:
                raise UnreadableError(f"header {name} stands there twice")
            self._values[name] = value

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def raw(self, name: str) -> bytes | None:
        """Return the bytes, None for null; raise UnreadableError when it is missing."""
        if name not in self._values:
            raise UnreadableError(f"header {name} is missing")
        return self._values[name]

    def text(self, name: str) -> str:
        """Return text of at least one character."""
        value = self.raw(name)
        try:
            text = (value or b"").decode()
        except UnicodeDecodeError:
            text = ""
        if not text:
            raise UnreadableError(f"header {name} is {value!r}, not text")
        return text

    def words(self, name: str) -> str | None:
        """Return text that may be empty or missing (None), but can be shown in Postgres."""
        value = self._values.get(name)
        try:
            text = None if value is None else value.decode()
        except UnicodeDecodeError:
            raise UnreadableError(f"header {name} is {value!r}, not text") from None
        if text is not None and "\0" in text:
            raise UnreadableError(f"header {name} holds a NUL")
        return text

    def number(self, name: str, least: int = 0) -> int:
        """Return a decimal number in its one way of writing, not below ``least``."""
        value = self.raw(name)
        if value is None or not _NUMBER.fullmatch(value) or int(value) < least:
            raise UnreadableError(f"header {name} is {value!r}, not a decimal number from {least} on")
        return int(value)

    def wait_id(self, name: str) -> str:
        """Return a UUID in canonical form."""
        text = self.text(name)
        if not _UUID.fullmatch(text):
            raise UnreadableError(f"header {name} is {text!r}, not a UUID")
        return text

    def time_ms(self, name: str) -> int:
        """Return a time, ms since the epoch."""
        text = self.text(name)
        try:
            if not _TIME.fullmatch(text):
                raise ValueError
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise UnreadableError(f"header {name} is {text!r}, not ISO 8601 UTC with milliseconds and Z") from None
        return round(moment.timestamp() * 1000)

    def one_of(self, name: str, *words: str) -> str:
        """Return one of these words."""
        text = self.text(name)
        if text not in words:
            raise UnreadableError(f"header {name} is {text!r}, not one of {', '.join(words)}")
        return text

    def place(self, prefix: str) -> tuple[str, int, int]:
        """Return topic, partition and offset of the headers with this prefix."""
        return self.text(f"{prefix}_TOPIC"), self.number(f"{prefix}_PARTITION"), self.number(f"{prefix}_OFFSET")


def headers_of_json(text: bytes | str | None) -> list[tuple[str, bytes | None]]:
    """Read ``[[name, base64 or null], ...]``; raise UnreadableError for anything else."""
    try:
        items = json.loads(text or "")
        return [(_name(name), _bytes(value)) for name, value in items]
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableError(f"headers in JSON can't be read: {error}") from None


def _name(name: Any) -> str:
    if isinstance(name, str):
        return name
    if not isinstance(name, dict) or list(name) != ["base64"]:
        raise UnreadableError(f"a header's name is {name!r}")
    return (_bytes(name["base64"]) or b"").decode("utf-8", "surrogatepass")


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise UnreadableError(f"a header's value is {value!r}")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise UnreadableError(f"a header's value isn't base64: {error}") from None
