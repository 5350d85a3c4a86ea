"""Two connectors that do one work: a second sink of one view brings back resolved rows, a second source exports twice.

What a connector does is seen by the tables that it works on, and where those are; never by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from wait_registry.cli.connect.connector_file import Connector
from wait_registry.cli.connect.connector_state import ConnectorState
from wait_registry.cli.connect.place import exports, keeps_view
from wait_registry.cli.connect.sink_lag import sink_topics
from wait_registry.errors import ConfigurationError

# What a sink calls its table; `${topic}` is what both families take it for when nothing is said.
_TABLE_NAMES: Final = ("collection.name.format", "table.name.format")
# `schema.expired_outbox`, `"schema".expired_outbox_open` and `schema\.expired_outbox` are one table; the function
# fill_expired_outbox is none.
_OUTBOX: Final = re.compile(r'(?:([^\s".\\,()]+)"?\\?\.)?"?(?<!\w)(expired_outbox|expired_tombstone)')


@dataclass(frozen=True, slots=True)
class Work:
    """One thing that one connector alone may do: ``what`` for people, ``database`` and ``table`` where."""

    what: str
    database: str
    table: str


def works(config: Mapping[str, str]) -> frozenset[Work]:
    """Return what a connector does that no other may do beside it. Pure."""
    found: set[Work] = set()
    if keeps_view(config):
        table = next((config[name] for name in _TABLE_NAMES if name in config), "${topic}")
        topics = sink_topics(config) or [config.get("topics.regex", "")]
        found |= {Work(f"writes {table} from {topic}", _database(config), table) for topic in topics}
    if exports(config):
        tables = {match.groups("") for value in config.values() for match in _OUTBOX.finditer(value)}
        named = {".".join(filter(None, parts)) for parts in tables}
        found |= {Work(f"exports from {table}", _database(config), table) for table in named}
    return frozenset(found)


def require_no_rivals(connectors: Iterable[Connector], states: Iterable[ConnectorState]) -> None:
    """Refuse connectors that would do what one of another name does already, or is about to. Pure.

    Args:
        connectors: what is to be put in place.
        states: all connectors that are there, running or not: one that is stopped may be resumed.

    Raises:
        ConfigurationError: two would do one work.
    """
    wanted = list(connectors)
    there = {state.name: works(state.config) for state in states}
    # What is applied replaces what is there under its name.
    there |= {connector.name: works(connector.config) for connector in wanted}
    for connector in wanted:
        for name, done in there.items():
            shared = works(connector.config) & done
            if name != connector.name and shared:
                raise _refusal(connector.name, name, min(work.what for work in shared))


def _refusal(name: str, other: str, what: str) -> ConfigurationError:
    return ConfigurationError(
        f"nothing was changed: {other} {what}, and {name} would be a second one that does: resolved rows would come "
        f"back, or everything would be exported twice. Keep one: give the file the name {other}, which goes on where "
        f"it is, or `waitreg connect remove {other}` first"
    )


def _database(config: Mapping[str, str]) -> str:
    """Return where the tables are, in one form for both families."""
    if "connection.url" in config:
        return config["connection.url"].partition("?")[0]
    return "jdbc:postgresql://{}:{}/{}".format(
        *(config.get(f"database.{part}", "") for part in ("hostname", "port", "dbname"))
    )
