"""The URL of an HTTP handler, with the values of a record's headers in its path if it names any."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import quote, unquote

from aiohttp import BasicAuth
from yarl import URL

from processor.handlers.host import can_be_looked_up
from wait_registry.errors import ConfigurationError, MalformedError
from wait_registry.handler import Record

_PLACE: Final = re.compile(r"\{header:[^{}/]+\}")
# The same once the URL's other characters are encoded.
_ENCODED_PLACE: Final = re.compile(r"%7Bheader:(.+?)%7D")


def url_template(text: str) -> Callable[[Record], URL]:
    """Read the setting.

    Args:
        text: begins with ``http://`` or ``https://``; each ``{header:name}`` in its path is a place for the value of a
            record's last header of that name. It may hold a password, so no error repeats it.

    Returns:
        Gives the URL of a record: every value is percent-encoded within one segment of the path. It raises
        MalformedError if the record has no value for a place.

    Raises:
        ConfigurationError: no record could ever be sent to it; the message says why.
    """
    _, _, path = re.split("[?#]", text.partition("://")[2], maxsplit=1)[0].partition("/")
    if text.count("{") != len(_PLACE.findall(path)):
        raise _not_callable("a { in it doesn't begin a {header:name} in its path")
    url = require_callable(text)
    fixed = _ENCODED_PLACE.split(str(url))
    names = [unquote(name) for name in fixed[1::2]]
    if not names:
        return lambda record: url

    def filled(record: Record) -> URL:
        parts = list(fixed)
        parts[1::2] = [quote(_value(record, name), safe="") for name in names]
        filled_in = URL("".join(parts), encoded=True)
        if _has_dot_segment(filled_in.raw_path):
            raise MalformedError(
                f"processor.handler takes {_list(names)}, whose value would be a dot segment of the path"
            )
        return filled_in

    return filled


def _has_dot_segment(path: str) -> bool:
    """Return whether a server or proxy may take a path for another one: some decode before they resolve, even twice."""
    decoded = unquote(path)
    return any(not {".", ".."}.isdisjoint(re.split(r"[/\\;]", read)) for read in (path, decoded, unquote(decoded)))


def _value(record: Record, name: str) -> bytes:
    value = next((value for key, value in reversed(record.headers) if key == name), None)
    if not value:
        raise MalformedError(f"processor.handler takes {_list([name])}, and the record has none, or an empty one")
    return value


def _list(names: list[str]) -> str:
    return f"the header {', '.join(map(repr, names))}"


def require_callable(text: str) -> URL:
    """Read a URL as the client will.

    Args:
        text: begins with ``http://`` or ``https://``; may hold a password, so no error repeats it.

    Returns:
        The URL; it isn't called, so a service may be missing there.

    Raises:
        ConfigurationError: no record could ever be sent to it; the message says why.
    """
    try:
        url = URL(text)
    except ValueError:
        raise _not_callable("host and port can't be read") from None
    host = url.raw_host
    if not host:
        raise _not_callable("it names no host")
    if not can_be_looked_up(host):
        raise _not_callable(f"{host!r} is no host name and no address")
    try:
        credentials = BasicAuth.from_url(url)
        if credentials is not None:
            credentials.encode()
    except ValueError:
        raise _not_callable("its user or password can't be sent: no colon in the user, and Latin-1 only") from None
    return url


def _not_callable(seen: str) -> ConfigurationError:
    return ConfigurationError(
        f"processor.handler is a URL that can't be called: {seen}. Expected http(s)://host:port/path: check for an "
        "empty variable in it. (It isn't shown here, since it may hold a password.)"
    )
