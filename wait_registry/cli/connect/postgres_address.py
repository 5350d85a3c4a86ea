"""Where a connector finds Postgres: the address that libpq takes, in the words of a Java client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings

DEFAULT_PORT: Final = "5432"
_EXAMPLE: Final = "postgresql://user@host:5432/database as the worker reaches it"
# libpq and pgjdbc have the same names for these; the files are the worker's.
TLS_FILES: Final = ("sslrootcert", "sslcert", "sslkey")
_TARGETS: Final = {"read-write": "primary", "primary": "primary", "any": "any"}


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """An address of Postgres; ``hosts`` are pairs of host and port, ``setting`` is where they come from."""

    hosts: tuple[tuple[str, str], ...]
    database: str
    user: str
    options: tuple[tuple[str, str], ...]
    setting: str

    @classmethod
    def of(cls, settings: Settings) -> PostgresAddress:
        """Read `connect.postgres_url`, or postgres.url without its password.

        Raises:
            ConfigurationError: it can't be read, or lacks something that a Java client needs.
        """
        setting = "connect.postgres_url" if settings.connect.postgres_url else "postgres.url"
        given = _parts(settings.connect.postgres_url or settings.postgres.url.get_secret_value(), setting)
        for part, word in (("host", "host"), ("user", "user"), ("dbname", "database")):
            if not given.get(part):
                raise ConfigurationError(
                    f"{setting} names no {word}, and a connector needs one: set connect.postgres_url to {_EXAMPLE}"
                )
        if given["host"].startswith(("/", "@")):
            raise ConfigurationError(
                f"{setting} leads to a Unix socket, which Java can't use: set connect.postgres_url to {_EXAMPLE}"
            )
        hosts = given["host"].split(",")
        ports = [port or DEFAULT_PORT for port in given.get("port", "").split(",")]
        ports = ports * len(hosts) if len(ports) == 1 else ports
        # An @ in a host comes from a password in which it should have been %40.
        if len(ports) != len(hosts) or not all(map(str.isdecimal, ports)) or "@" in given["host"]:
            raise _unreadable(setting)
        return cls(tuple(zip(hosts, ports, strict=True)), given["dbname"], given["user"], _options(given), setting)

    @property
    def only_host(self) -> tuple[str, str]:
        """Host and port, for connectors that take one only.

        Raises:
            ConfigurationError: there are several.
        """
        if len(self.hosts) > 1:
            raise ConfigurationError(
                f"{self.setting} names {len(self.hosts)} hosts, and this connector takes one: set "
                "connect.postgres_url to one address that follows the primary"
            )
        return self.hosts[0]

    @property
    def jdbc_url(self) -> str:
        """The URL of pgjdbc; it has a query part, so that further parameters are added with ``&``.

        Errors of statements don't have the row in them, because the worker logs them and its REST API shows them.
        """
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        options = urlencode((*self.options, ("logServerErrorDetail", "false")))
        return f"jdbc:postgresql://{hosts}/{quote(self.database, safe='')}?{options}"

    def option(self, name: str) -> str | None:
        """Return an option of the connection's protection, such as ``sslmode``; None if it isn't set."""
        return dict(self.options).get(name)


def _parts(url: str, setting: str) -> dict[str, str]:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        return {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError:
        # libpq's message repeats the text, with the password.
        raise _unreadable(setting) from None


def _unreadable(setting: str) -> ConfigurationError:
    return ConfigurationError(
        f"{setting} can't be read: expected postgresql://user@host:5432/database (special characters as %XX)"
    )


def _options(given: dict[str, str]) -> tuple[tuple[str, str], ...]:
    options = [("sslmode", given.get("sslmode", "prefer"))]
    options += [(name, given[name]) for name in TLS_FILES if name in given]
    target = _TARGETS.get(given.get("target_session_attrs", ""))
    return (*options, ("targetServerType", target)) if target else tuple(options)
