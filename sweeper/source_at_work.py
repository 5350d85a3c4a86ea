"""Is a Kafka Connect source at work, which exports what this sweeper is about to export as well?"""

from __future__ import annotations

import logging

import psycopg
from psycopg.rows import TupleRow

from sweeper.due import QUERIES
from sweeper.health import longest_silence_s
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)


def require_no_source_at_work(settings: Settings, connections: OpenConnections | None = None) -> None:
    """Refuse to go on where a source exports from this schema, whatever sweeper.kind says.

    Where Postgres doesn't tell us (it is away, or the outbox isn't ours to read), the setting must do.

    Args:
        settings: of the sweeper.
        connections: those of the service, among which the one that is opened for this counts.

    Raises:
        ConfigurationError: one does; the message says what to do.
    """
    silent_most_s = longest_silence_s(settings.sweeper.interval_s)
    reads, filled_ago_s = False, None
    try:
        with (connections or OpenConnections()).open(settings.postgres, "waitreg-sweeper") as connection:
            reads = connection.execute(QUERIES["outbox_read"]).fetchone() is not None
            filled_ago_s = _filled_ago_s(connection, settings.wait.topic, silent_most_s)
    except psycopg.errors.InsufficientPrivilege:
        log.warning(
            "whether a Kafka Connect source exports here can't be seen, only sweeper.kind counts: grant select on "
            "expired_outbox to the sweeper's role (deploy/postgres/roles.sql)"
        )
    except (WaitRegistryError, psycopg.Error) as error:
        log.debug("whether a source is at work can't be told: %s", error)
    refusal = refusal_of_source(reads, filled_ago_s, silent_most_s)
    if refusal is not None:
        raise ConfigurationError(refusal)


def _filled_ago_s(connection: psycopg.Connection[TupleRow], topic: str, silent_most_s: float) -> float | None:
    row = connection.execute(QUERIES["outbox_filled"], {"topic": topic, "silent_most_s": silent_most_s}).fetchone()
    return None if row is None else row[0]


def refusal_of_source(reads: bool, filled_ago_s: float | None, silent_most_s: float) -> str | None:
    """Judge by whether a source holds its replication slot, and when one last filled the outbox. Pure.

    Args:
        reads: the slot of `expired.source` is in use.
        filled_ago_s: since the last row came into the outbox, s; None when that is longer ago than ``silent_most_s``.
        silent_most_s: how long a source that is gone may still be taken for one at work, s.
    """
    if not reads and filled_ago_s is None:
        return None
    seen = "reads expired_outbox" if filled_ago_s is None else f"put a row into expired_outbox {filled_ago_s:.0f} s ago"
    return (
        f"a Kafka Connect source {seen}: beside it a sweeper would export every registration that expires a second "
        "time. Don't start `waitreg sweeper`, and set sweeper.kind=connect; or, to sweep instead, `waitreg connect "
        f"remove expired.source expired.tombstones`: a sweeper starts once expired_outbox has had no new row for "
        f"{silent_most_s:.0f} s"
    )
