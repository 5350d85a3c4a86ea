"""Postgres as a Kafka Connect worker is told it: host, port, database, user and a JDBC URL; never a password."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args
from urllib.parse import quote, urlencode

from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings

DEFAULT_PORT: Final = "5432"
# What libpq and pgjdbc call alike; the files they name are the worker's.
TlsFile = Literal["sslrootcert", "sslcert", "sslkey"]
_ALIKE: Final = get_args(TlsFile)
_TARGETS: Final = {"read-write": "primary", "primary": "primary", "any": "any"}


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a connector finds Postgres; ``hosts`` are pairs of host and port, ``setting`` is where they come from."""

    hosts: tuple[tuple[str, str], ...]
    database: str
    user: str
    options: tuple[tuple[str, str], ...]
    setting: str

    @classmethod
    def of(cls, settings: Settings) -> PostgresAddress:
        """Read `connect.postgres_url`, or postgres.url without its password.

        Raises:
            ConfigurationError: it can't be read, or says not all that a Java client needs.
        """
        setting = "connect.postgres_url" if settings.connect.postgres_url else "postgres.url"
        given = _parts(settings.connect.postgres_url or settings.postgres.url.get_secret_value(), setting)
        for part, word in (("host", "host"), ("user", "user"), ("dbname", "database")):
            if not given.get(part):
                raise ConfigurationError(
                    f"{setting} names no {word}, and a connector needs one: set connect.postgres_url to "
                    "postgresql://user@host:5432/database as the worker reaches it"
                )
        if given["host"].startswith(("/", "@")):
            raise ConfigurationError(
                f"{setting} leads to a Unix socket, which Java can't use: set connect.postgres_url to "
                "postgresql://user@host:5432/database as the worker reaches it"
            )
        hosts = given["host"].split(",")
        ports = [port or DEFAULT_PORT for port in given.get("port", "").split(",")]
        ports = ports * len(hosts) if len(ports) == 1 else ports
        # An @ in a host is the rest of a password that should have been written %40.
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
    def sslmode(self) -> str:
        """How the connection is protected, in the words that libpq and Java share."""
        return dict(self.options)["sslmode"]

    @property
    def jdbc_url(self) -> str:
        """The URL of pgjdbc; it has a query part, so that further parameters are added with ``&``.

        What is wrong with a statement is said without the row in it: the worker logs it, and its REST API shows it.
        """
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        options = urlencode((*self.options, ("logServerErrorDetail", "false")))
        return f"jdbc:postgresql://{hosts}/{quote(self.database, safe='')}?{options}"

    def file(self, option: TlsFile) -> str | None:
        """The worker's file that an option of the connection's protection names; None where it names none."""
        return dict(self.options).get(option)


def _parts(url: str, setting: str) -> dict[str, str]:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        return {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.ProgrammingError:
        # What libpq says repeats the text, password and all.
        raise _unreadable(setting) from None


def _unreadable(setting: str) -> ConfigurationError:
    return ConfigurationError(
        f"{setting} can't be read: expected postgresql://user@host:5432/database (special characters as %XX)"
    )


def _options(given: dict[str, str]) -> tuple[tuple[str, str], ...]:
    options = [("sslmode", given.get("sslmode", "prefer"))]
    options += [(name, given[name]) for name in _ALIKE if name in given]
    target = _TARGETS.get(given.get("target_session_attrs", ""))
    return (*options, ("targetServerType", target)) if target else tuple(options)
