"""What a connector does: it keeps the tables as the sink would, or exports as the sweeper would.

Its role follows from its tables, their database and the transforms that fill them, not from its name or file: a copy
with changes has the same role.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

_ROWS: Final = ("io.waitreg.connect.WaitRecordToRow", "io.waitreg.connect.DeadLetterToRow")
# `schema.expired_outbox`, `"schema".expired_outbox_open` and `schema\.expired_outbox` are one table; the function
# fill_expired_outbox isn't meant.
_OUTBOX: Final = re.compile(r'(?:([^\s".\\,()]+)"?\\?\.)?"?(?<!\w)(expired_outbox|expired_tombstone)')


def keeps_tables(config: Mapping[str, str]) -> bool:
    """Return whether a connector writes the tables that the sink would write."""
    return any(value in _ROWS for value in config.values())


def exports(config: Mapping[str, str]) -> bool:
    """Return whether a connector exports from the outbox what the sweeper would export."""
    return any(map(_OUTBOX.search, config.values()))


def asks_by_id(config: Mapping[str, str]) -> bool:
    """Return whether a source asks for rows with an ID above the last one, as those of the JDBC family do."""
    return "query" in config


# Where a sink has its table; the default of both families is `${topic}`.
_TABLE_NAMES: Final = ("collection.name.format", "table.name.format")


class Work(NamedTuple):
    """Work that only one connector may do: write a table from a topic, or export from a table, with no topic."""

    database: str
    schema: str
    table: str
    topic: str = ""


def works(config: Mapping[str, str]) -> frozenset[Work]:
    """Return the work of a connector that no other may do at the same time."""
    found: set[Work] = set()
    if keeps_tables(config):
        table = next((config[name] for name in _TABLE_NAMES if name in config), "${topic}")
        schema, _, name = table.replace('"', "").rpartition(".")
        topics = sink_topics(config) or [config.get("topics.regex", "")]
        found |= {Work(_database(config), schema, name, topic) for topic in topics}
    if exports(config):
        tables = {match.groups("") for value in config.values() for match in _OUTBOX.finditer(value)}
        found |= {Work(_database(config), schema, name) for schema, name in tables}
    return frozenset(found)


def _database(config: Mapping[str, str]) -> str:
    """Return the address of the tables, in one form for both families."""
    if "connection.url" in config:
        return config["connection.url"].partition("?")[0]
    return "jdbc:postgresql://{}:{}/{}".format(
        *(config.get(f"database.{part}", "") for part in ("hostname", "port", "dbname"))
    )


def registries(config: Mapping[str, str], table: str = "") -> set[tuple[str, str]]:
    """Return database and schema of a connector's tables, or only of those with the given name."""
    return {(work.database, work.schema) for work in works(config) if table in ("", work.table)}


def sink_group(name: str, config: Mapping[str, str]) -> str:
    """Return the consumer group of a sink connector."""
    return config.get("consumer.override.group.id") or f"connect-{name}"


def sink_topics(config: Mapping[str, str]) -> list[str]:
    """Return the topics that a sink connector lists."""
    return [topic.strip() for topic in config.get("topics", "").split(",") if topic.strip()]
