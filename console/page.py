"""What a page is made of: what was asked, the tables, and the template that shows the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlencode

from console.tables import Tables


class Asked(NamedTuple):
    """A request: the values in its path, those behind the question mark in their order, and when it came (UTC)."""

    path: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    now: datetime

    def values(self) -> dict[str, str]:
        """Return the given values by name, of several the last; empty ones, as forms send them, are skipped."""
        return {name: value for name, value in self.query if value}


class Page(NamedTuple):
    """A template with its values; ``contents_of`` is the place of the dead letter whose contents it shows, if any."""

    template: str
    values: Mapping[str, Any]
    status: int = 200
    contents_of: str = ""


class Download(NamedTuple):
    """Bytes as they are, for a file of this name, and the place of the dead letter that they are of."""

    name: str
    content: bytes
    contents_of: str


class Fixed(NamedTuple):
    """A page that says the same to all, for which Postgres isn't needed."""

    page: Callable[[], Page]


View: TypeAlias = Callable[[Asked, Tables], Page | Download]


class NotThere(Exception):
    """No such page; the message says what there is."""


def address(path: str, *pairs: tuple[str, str]) -> str:
    """Return a path with values behind a question mark."""
    return f"{path}?{urlencode(pairs)}" if pairs else path
