"""Where a connector finds Postgres: the address that libpq takes, in the words of a Java client."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from wait_registry.errors import ConfigurationError
from wait_registry.settings.tree import Settings

# libpq and pgjdbc have the same names for these; the files are the worker's.
_OPTIONS: Final[tuple[str, ...]] = ("sslmode", "sslrootcert", "sslcert", "sslkey")
PARTS: Final = ("host", "port", "database", "user", "jdbc_url", *_OPTIONS)


def postgres_part(part: str, settings: Settings) -> str | None:
    """Return a part of `connect.postgres_url`, or of postgres.url without its password.

    Args:
        part: one of `PARTS`.
        settings: where the address is.

    Returns:
        The part; None for an option that the address doesn't have. ``jdbc_url`` is the whole address.

    Raises:
        ConfigurationError: the address can't be read, or lacks something that a Java client needs.
    """
    setting = "connect.postgres_url" if settings.connect.postgres_url else "postgres.url"
    given = _parsed(settings.connect.postgres_url or settings.postgres.url.get_secret_value(), setting)
    hosts = _hosts(given, setting)
    if part == "jdbc_url":
        return _jdbc_url(given, hosts)
    if part not in ("host", "port"):
        return given.get("dbname" if part == "database" else part)
    if len(hosts) > 1:
        raise ConfigurationError(
            f"{setting} names {len(hosts)} hosts, and this connector takes one: set connect.postgres_url to one "
            "address that follows the primary"
        )
    return hosts[0][part == "port"]


def _parsed(url: str, setting: str) -> dict[str, str]:
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError:
        # libpq's message repeats the text, with the password.
        raise _unreadable(setting) from None
    for part, word in (("host", "host"), ("user", "user"), ("dbname", "database")):
        if not given.get(part) or given[part].startswith(("/", "@")):
            raise ConfigurationError(
                f"{setting} names no {word} that a connector can use (Java has no Unix sockets): set "
                "connect.postgres_url to postgresql://user@host:5432/database as the worker reaches it"
            )
    return {"sslmode": "prefer", **given}


def _hosts(given: dict[str, str], setting: str) -> list[tuple[str, str]]:
    hosts = given["host"].split(",")
    ports = [port or "5432" for port in given.get("port", "").split(",")]
    ports = ports * len(hosts) if len(ports) == 1 else ports
    # An @ in a host comes from a password in which it should have been %40.
    if len(ports) != len(hosts) or not all(map(str.isdecimal, ports)) or "@" in given["host"]:
        raise _unreadable(setting)
    return list(zip(hosts, ports, strict=True))


def _jdbc_url(given: dict[str, str], hosts: list[tuple[str, str]]) -> str:
    """Return the URL of pgjdbc; it has a query part, so that further parameters are added with ``&``."""
    places = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts)
    options = {name: given[name] for name in _OPTIONS if name in given}
    if given.get("target_session_attrs") in ("read-write", "primary"):
        options["targetServerType"] = "primary"
    # Errors of statements don't have the row in them, because the worker logs them and its REST API shows them.
    query = urlencode({**options, "logServerErrorDetail": "false"})
    return f"jdbc:postgresql://{places}/{quote(given['dbname'], safe='')}?{query}"


def _unreadable(setting: str) -> ConfigurationError:
    return ConfigurationError(
        f"{setting} can't be read: expected postgresql://user@host:5432/database (special characters as %XX)"
    )
