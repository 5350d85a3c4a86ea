"""What a page is made of: what was asked, the tables, and the template that shows the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlencode

from waitreg.console.tables import Tables

if TYPE_CHECKING:
    from waitreg.console.acting.actor import Actor


# A path of this console: browsers take // and /\\ as the beginning of another host. A cookie has at most 4 kB.
_LOCAL: Final = re.compile(r"/(?![/\\])[!-\[\]-~]{0,2000}")


class Asked(NamedTuple):
    """A request: the values in its path, those behind the question mark in their order, and when it came (UTC).

    ``form`` has the fields of what changes something, ``content`` the bytes that are sent in place of fields, and
    ``actor`` does it; a console that only reads has none.
    """

    path: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    now: datetime
    form: Sequence[tuple[str, str]] = ()
    actor: Actor | None = None
    content: bytes = b""

    def values(self) -> dict[str, str]:
        """Return the given values by name, of several the last; empty ones, as forms send them, are skipped."""
        return {name: value for name, value in self.query if value}

    def conditions(self) -> list[str] | None:
        """Return the conditions as they were given, without empty ones; None if there is no field for them.

        Blanks at the end of a condition are part of its value: keys may end so.
        """
        given = [value.lstrip() for name, value in self.query if name == "where"]
        return list(filter(str.strip, given)) if given else None


class Page(NamedTuple):
    """A template with its values.

    Attributes:
        template: file in console/templates.
        values: what it shows.
        status: of HTTP.
        contents_of: place of the dead letter whose contents it shows, if any.
    """

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


class Redirect(NamedTuple):
    """The address of the page that shows what was done."""

    location: str


Answered: TypeAlias = Page | Download | Redirect
View: TypeAlias = Callable[[Asked, Tables], Answered]


class NotThere(Exception):
    """No such page; the message says what there is."""


def address(path: str, *pairs: tuple[str, str]) -> str:
    """Return a path with values behind a question mark."""
    return f"{path}?{urlencode(pairs)}" if pairs else path


def local_path(text: str) -> str:
    """Return a path if it leads to a page of this console, or else that of the start page."""
    return text if _LOCAL.fullmatch(text) else "/"
