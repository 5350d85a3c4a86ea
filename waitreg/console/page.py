"""What a page is made of: what was asked, the tables, and the template that shows the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlencode

from wait_registry.errors import ConfigurationError
from waitreg.console.actions.actions import Actions
from waitreg.console.tables import Tables

# `Actions` for addresses that only a console that acts has; others are also asked of consoles that only read.
Acts = TypeVar("Acts", bound=Actions | None)
MOST_REASON: Final = 500
# A path of this console: browsers take // and /\\ as the beginning of another host. A cookie has at most 4 kB.
_LOCAL: Final = re.compile(r"/(?![/\\])[!-\[\]-~]{0,2000}")


class Asked(NamedTuple, Generic[Acts]):
    """A request: the values in its path, those behind the question mark in their order, and when it came (UTC).

    ``actions`` are what the console does; a console that only reads has none. ``form`` has the fields of what changes
    something, ``content`` the bytes that are sent in place of fields.
    """

    path: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    now: datetime
    actions: Acts
    form: Sequence[tuple[str, str]] = ()
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

    def field(self, name: str) -> str:
        """Return the value of a field of the form, without blanks around it; "" if there is none."""
        return dict(self.form).get(name, "").strip()

    def reason(self, default: str = "") -> str:
        """Return the reason that the form gives.

        Raises:
            ConfigurationError: as `require_reason`.
        """
        return require_reason(self.field("reason") or default)


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
    """Bytes as they are, for a file, and the place of the dead letter that they are of."""

    content: bytes
    contents_of: str


class Fixed(NamedTuple):
    """A page that says the same to all, for which Postgres isn't needed."""

    page: Callable[[], Page]


class Redirect(NamedTuple):
    """The address of the page that shows what was done."""

    location: str


Answered: TypeAlias = Page | Download | Redirect
View: TypeAlias = Callable[[Asked[Acts], Tables], Answered]


def require_reason(reason: str) -> str:
    """Return a reason.

    Raises:
        ConfigurationError: it is empty, too long, or has characters that can't be printed.
    """
    if not reason or len(reason) > MOST_REASON or not reason.isprintable():
        raise ConfigurationError(
            f"give a reason, one line of at most {MOST_REASON} characters, for those who look later"
        )
    return reason


def address(path: str, *pairs: tuple[str, str]) -> str:
    """Return a path with values behind a question mark."""
    return f"{path}?{urlencode(pairs)}" if pairs else path


def local_path(text: str) -> str:
    """Return a path if it leads to a page of this console, or else that of the start page."""
    return text if _LOCAL.fullmatch(text) else "/"
