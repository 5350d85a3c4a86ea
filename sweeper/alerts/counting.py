"""Counts the dead letters of each rule, in one sweeper of several: the one that holds the lock in Postgres."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from sweeper.alerts.notice import most_counted
from wait_registry.dead_letters.filter import Filter, parse_filter
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.postgres.connection import limit_to_counting
from wait_registry.postgres.errors import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.postgres.queries import Queries
from wait_registry.settings.alerts import AlertRule
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)

QUERIES: Final = Queries("alerts")
# Dead letters that the tables don't have yet can't be counted, and may be older than a window when they are there.
TABLES_OLD_S: Final = 600.0


class Counts(NamedTuple):
    """Dead letters by the name of the rule; ``problem`` says why rules are missing, or why counts may be too low."""

    by_rule: Mapping[str, int]
    problem: str = ""


def conditions(rule: AlertRule, now: datetime) -> Filter:
    """Return which dead letters a rule counts.

    Raises:
        ConfigurationError: a condition can't be read, or says what the window says.
    """
    try:
        chosen = parse_filter(rule.filter, now)
        if any(condition.field == "since" for condition in chosen.conditions):
            raise ConfigurationError("'filter' has since=; set 'window' instead")
    except ConfigurationError as error:
        raise ConfigurationError(f"the rule {rule.name!r} of alerts.rule: {error}") from None
    return chosen if rule.window is None else parse_filter((*rule.filter, f"since={rule.window}"), now)


def count_query(rule: AlertRule, now: datetime) -> tuple[str, list[Any]]:
    """Return the query of a rule's count and its parameters."""
    where, parameters = conditions(rule, now).sql()
    query = f"select count(*) from (select from dead_letter where {where} limit %s) as counted"
    return query, [*parameters, most_counted(rule)]


class Counting:
    """Counts for all rules, over a connection that is kept, because the lock is its session's.

    Args:
        settings: the rules, and where Postgres is.
        connections: those of the service, to be given up with it.

    Raises:
        ConfigurationError: a rule has a condition that can't be read.
    """

    def __init__(self, settings: Settings, connections: OpenConnections) -> None:
        self._settings = settings
        self._connections = connections
        self._connection: psycopg.Connection[TupleRow] | None = None
        self._held = ExitStack()
        self._leads = False
        for rule in settings.alerts.rule:
            conditions(rule, datetime.now(UTC))

    def counts(self, now: datetime) -> Counts | None:
        """Return what there is of each rule; None if another sweeper evaluates.

        While Postgres doesn't answer, the sweeper that held the lock last continues, with a problem instead of counts.
        """
        try:
            connection = self._connected()
            return None if connection is None else self._counted(connection, now)
        except (psycopg.Error, WaitRegistryError) as error:
            self.close()
            log.debug("no alert rule can be evaluated: %s", error_text(error))
            return Counts({}, error_text(error)) if self._leads else None

    def close(self) -> None:
        """Give the lock to another sweeper."""
        self._connection = None
        self._held.close()

    def _connected(self) -> psycopg.Connection[TupleRow] | None:
        """Return the connection that holds the lock."""
        if self._connection is None:
            opened = self._connections.open(self._settings.postgres, "waitreg-sweeper alerts")
            connection = self._held.enter_context(opened)
            limit_to_counting(connection)
            self._leads = bool(_value(connection, QUERIES["try_lock"]))
            if not self._leads:
                self.close()
                return None
            self._connection = connection
        return self._connection

    def _counted(self, connection: psycopg.Connection[TupleRow], now: datetime) -> Counts:
        found: dict[str, int] = {}
        problems: list[str] = []
        for rule in self._settings.alerts.rule:
            query, parameters = count_query(rule, now)
            try:
                found[rule.name] = _value(connection, query, parameters)
            except (psycopg.errors.QueryCanceled, psycopg.DataError) as error:
                problems.append(f"{rule.name}: {error_text(error)}")
        staleness_s = _value(connection, QUERIES["tables_staleness"], {"old_s": TABLES_OLD_S})
        if staleness_s is not None and staleness_s > TABLES_OLD_S:
            problems.append(f"the tables are {staleness_s:.0f} s old, so dead letters are missing from the counts")
        return Counts(found, "; ".join(problems))


def _value(
    connection: psycopg.Connection[TupleRow],
    query: str,
    parameters: Sequence[object] | Mapping[str, object] | None = None,
) -> Any:
    # The text comes from sql/alerts.sql and `FIELDS`, never from input; values are sent separately.
    row = connection.execute(query.encode(), parameters).fetchone()
    assert row is not None
    return row[0]
