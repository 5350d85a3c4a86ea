"""Checks the URL of the HTTP handler before a record is polled: a wrong one would dead-letter every record."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address

from aiohttp import BasicAuth
from yarl import URL

from wait_registry.errors import ConfigurationError


def require_callable(text: str) -> URL:
    """Read a URL as the client will.

    Args:
        text: begins with ``http://`` or ``https://``; may hold a password, so no error repeats it.

    Returns:
        The URL; whether anybody answers there isn't known.

    Raises:
        ConfigurationError: no record could ever be sent to it; the message says why.
    """
    try:
        url = URL(text)
    except ValueError:
        raise _refused("host and port can't be read") from None
    host = url.raw_host
    if not host:
        raise _refused("it names no host")
    if not _can_be_looked_up(host):
        raise _refused(f"{host!r} is no host name and no address")
    try:
        credentials = BasicAuth.from_url(url)
        if credentials is not None:
            credentials.encode()
    except ValueError:
        raise _refused("its user or password can't be sent: no colon in the user, and Latin-1 only") from None
    return url


def _can_be_looked_up(host: str) -> bool:
    try:
        if host.replace(".", "").isdigit():
            IPv4Address(host)
        elif ":" not in host:
            host.encode("idna")
    except (AddressValueError, UnicodeError):
        return False
    return True


def _refused(seen: str) -> ConfigurationError:
    return ConfigurationError(
        f"processor.handler is a URL that can't be called: {seen}. Expected http(s)://host:port/path: check for an "
        "empty variable in it. (It isn't shown here, since it may hold a password.)"
    )
