"""What `waitreg connect apply` refuses by the state in Postgres: a sink or a sweeper of ours runs, or has run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, LiteralString

from sweeper.health import longest_silence_s
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.postgres.queries import Queries
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from psycopg.rows import TupleRow

QUERIES: Final = Queries("connect")
Notice = Callable[[str], None]


def ask_postgres(
    settings: Settings, query: LiteralString, question: Mapping[str, Any], notice: Notice
) -> list[TupleRow] | None:
    """Return the rows of a query; None, after a notice, if Postgres is unavailable or we may not read the tables."""
    import psycopg

    from wait_registry.postgres.connection import connect
    from wait_registry.postgres.error_text import error_text

    try:
        with connect(settings.postgres, autocommit=True, application_name="waitreg connect") as connection:
            return connection.execute(query, question).fetchall()
    except (WaitRegistryError, psycopg.Error) as error:
        notice(
            f"Postgres can't be asked ({error_text(error)}), so this doesn't check whether a sink or a sweeper of ours "
            "runs or has left anything behind. The steps for a change from them are in connect-configs/README.md"
        )
        return None


def require_no_sink_position(settings: Settings, notice: Notice) -> None:
    """Refuse connectors of tables that a Connect sink keeps while they have the position of a sink of ours.

    A sweeper or a sink of ours that starts later, and the outbox at once, would take the Connect sink's rows for
    complete up to there, and export what was settled long ago.

    Args:
        settings: with sink.kind=connect.
        notice: gets a sentence if Postgres can't be asked; then only the steps in connect-configs/README.md help.

    Raises:
        ConfigurationError: there is such a position.
    """
    ago_s = _age_s(settings, "position_age", notice)
    if ago_s is not None:
        raise ConfigurationError(
            f"sink_progress has the position of a sink of ours on {settings.wait.topic}, written {ago_s:.0f} s ago. A "
            "Kafka Connect sink doesn't move it, so settled registrations would be exported. Stop `waitreg sink` and "
            "all Kafka Connect sinks, run `waitreg rebuild` with sink.kind=connect, then run this again"
        )


def require_no_sweeper_at_work(settings: Settings, notice: Notice) -> None:
    """Refuse to continue if a sweeper has swept lately, whatever these settings say.

    Args:
        settings: of the wait topic and the sweeper.
        notice: gets a sentence if Postgres can't be asked; then only sweeper.kind counts.

    Raises:
        ConfigurationError: one has.
    """
    ago_s, silent_most_s = _age_s(settings, "sweep_age", notice), longest_silence_s(settings.sweeper.interval_s)
    if ago_s is not None and ago_s <= silent_most_s:
        raise ConfigurationError(
            f"a sweeper of ours swept {ago_s:.0f} s ago. Together with a source it would export each expired "
            f"registration twice: stop the sweeper, and run this again once {silent_most_s:.0f} s have passed"
        )


def _age_s(settings: Settings, query: str, notice: Notice) -> float | None:
    rows = ask_postgres(settings, QUERIES[query], {"topic": settings.wait.topic}, notice)
    return rows[0][0] if rows else None


def require_no_stale_slot(new: Iterable[Connector], settings: Settings, notice: Notice) -> None:
    """Refuse new sources whose slot is older than a sweep: they would send again what the sweep exported.

    A row that was in the outbox and wasn't sent when the source was removed is exported by the sweeper, and the source
    still reads it from the slot. A source without a slot starts with what is open.

    Args:
        new: sources that don't exist yet.
        settings: of the wait topic and Postgres.
        notice: gets a sentence if Postgres can't be asked; then only the steps in connect-configs/README.md help.

    Raises:
        ConfigurationError: there is such a slot.
    """
    slots = [connector.config["slot.name"] for connector in new if "slot.name" in connector.config]
    if not slots:
        return
    question = {"slots": slots, "topic": settings.wait.topic}
    stale = [str(name) for (name,) in ask_postgres(settings, QUERIES["stale_slots"], question, notice) or ()]
    if stale:
        drop = "; ".join(f"select pg_drop_replication_slot('{name}')" for name in stale)
        raise ConfigurationError(
            f"nothing was changed: a sweeper of ours has exported rows that the replication slot {', '.join(stale)} "
            f"still holds, and the source would export them again. Drop the slot: {drop}; run this again.\n"
            "If a connector then fails because its slot is gone, its offsets are still known: follow steps 1, 3 and 4 "
            'of "When a source has lost its place" (connect-configs/README.md)'
        )
