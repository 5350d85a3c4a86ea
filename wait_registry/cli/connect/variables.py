"""What `${name}` in a connector's file stands for: settings, parts of Postgres' address, references to secrets."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args
from urllib.parse import quote, urlencode

from sweeper.outgoing import Policy
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.topic_specs import dead_letter_topics
from wait_registry.records.dead_letter import DEAD_LETTER_EXTRA_BYTES
from wait_registry.settings.names import find_setting, nearest, setting_names
from wait_registry.settings.root import Settings
from wait_registry.settings.secrets import value_of

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


SECRETS: Final = "connect.secrets."


def variable(name: str, settings: Settings) -> str | None:
    """Return the text that ``${name}`` stands for.

    Args:
        name: a setting's dotted name, or one of `DERIVED`.
        settings: where it is looked up.

    Returns:
        The value; a list is joined by commas. For ``connect.secrets...`` a reference (``${env:NAME}``) that the worker
        resolves: no secret ever comes out. None where there is nothing that the property could say: leave it out.

    Raises:
        ConfigurationError: no such variable (with the nearest one), one that isn't set, or a secret.
    """
    if name in DERIVED:
        return DERIVED[name](settings)
    if name in _INSTEAD:
        raise _secret(name, _INSTEAD[name])
    found = find_setting(name)
    if found is None:
        raise ConfigurationError(_unknown(name))
    setting, key = found
    if setting.is_secret:
        raise _secret(name, "a reference to where the worker finds it, ${env:NAME} or ${file:PATH:KEY}")
    if setting.is_table or key is not None:
        raise ConfigurationError(f"${{{name}}} is a table of properties; write what you need of it into the file")
    value = value_of(settings, name)
    if name.startswith(SECRETS):
        return f"${{{value}}}" if value else ""
    return _text(name, value)


def _text(name: str, value: Any) -> str:
    if value is None or value in ("", ()):
        raise ConfigurationError(f"${{{name}}} isn't set, and this connector needs it: --set {name}=...")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)


def _viewed_dead_letter_topics(settings: Settings) -> str:
    topics = dead_letter_topics(settings, "sink")
    if not topics:
        raise ConfigurationError(
            f"dead_letter.topic is {settings.dead_letter.topic!r}, and what stands for its braces isn't known here: "
            "list the topics in sink.dead_letter_topics"
        )
    return ",".join(topics)


def _largest_dead_letter(settings: Settings) -> str:
    return str(settings.wait.max_message_bytes + DEAD_LETTER_EXTRA_BYTES)


def _where_the_sweeper_would(settings: Settings) -> str:
    return Policy.of(settings).dead_letter_template


DERIVED: Final[Mapping[str, Callable[[Settings], str | None]]] = {
    "postgres.host": lambda settings: PostgresAddress.of(settings).only_host[0],
    "postgres.port": lambda settings: PostgresAddress.of(settings).only_host[1],
    "postgres.database": lambda settings: PostgresAddress.of(settings).database,
    "postgres.user": lambda settings: PostgresAddress.of(settings).user,
    "postgres.sslmode": lambda settings: PostgresAddress.of(settings).sslmode,
    "postgres.jdbc_url": lambda settings: PostgresAddress.of(settings).jdbc_url,
    "postgres.sslrootcert": lambda settings: PostgresAddress.of(settings).file("sslrootcert"),
    "postgres.sslcert": lambda settings: PostgresAddress.of(settings).file("sslcert"),
    "postgres.sslkey": lambda settings: PostgresAddress.of(settings).file("sslkey"),
    "sink.dead_letter_topics": _viewed_dead_letter_topics,
    "sweeper.dead_letter_topic": _where_the_sweeper_would,
    "dead_letter.max_message_bytes": _largest_dead_letter,
}
# What people write first, and what they should.
_INSTEAD: Final = {
    "postgres.url": "${postgres.jdbc_url}, or ${postgres.host}, ${postgres.port} and ${postgres.database}, with "
    "${postgres.user} and ${connect.secrets.postgres_password}",
    "postgres.password": "${connect.secrets.postgres_password}",
    "kafka.security.password": "${connect.secrets.kafka_password}",
    "kafka.security.key": "${connect.secrets.kafka_key}",
}


def _secret(name: str, instead: str) -> ConfigurationError:
    return ConfigurationError(
        f"${{{name}}} would put a secret into the connector's configuration, which Kafka Connect shows to everybody "
        f"who may ask: write {instead}"
    )


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, [*DERIVED, *setting_names()], 1, 0.75)
    close = near[0] if near else nearest(name)
    said = f"there is no variable ${{{name}}}"
    if close is not None:
        return f"{said}; did you mean ${{{close}}}?"
    return f"{said}: they are the settings (`waitreg config --all`) and ${{{'}, ${'.join(DERIVED)}}}"
