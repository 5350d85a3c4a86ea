"""What `waitreg connect apply` refuses by the state in Postgres: a sink or a sweeper is at work, or was."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

from sweeper.health import longest_silence_s
from wait_registry.cli.checks.sweeps import last_sweep_ago_s
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.postgres.queries import Queries
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

QUERIES: Final = Queries("connect")
T = TypeVar("T")
Notice = Callable[[str], None]


def ask_postgres(settings: Settings, ask: Callable[[psycopg.Connection[TupleRow]], T], notice: Notice) -> T | None:
    """Put a question to Postgres.

    Args:
        settings: where it is.
        ask: puts it, on a connection that commits each statement by itself.
        notice: gets a sentence when Postgres can't be asked.

    Returns:
        What ``ask`` returned; None when Postgres is away, or the tables are missing or not ours to read.
    """
    import psycopg

    from wait_registry.postgres.connection import connect
    from wait_registry.postgres.error_text import error_text

    try:
        with connect(settings.postgres, autocommit=True, application_name="waitreg connect") as connection:
            return ask(connection)
    except (WaitRegistryError, psycopg.Error) as error:
        notice(
            f"Postgres can't be asked ({error_text(error)}): whether a sink or a sweeper of ours is at work, or has "
            "left anything behind, isn't looked at. The steps for a change from them are in connect-configs/README.md"
        )
        return None


def require_no_sink_position(settings: Settings, notice: Notice) -> None:
    """Refuse connectors of a registry that a Connect sink keeps while it still has the position of a sink of ours.

    A sweeper or a sink of ours that begins again, and the outbox at once, would take the Connect sink's rows for
    complete up to there, and export what was finished long ago.

    Args:
        settings: with sink.kind=connect.
        notice: gets a sentence when Postgres can't be asked; then only the steps in connect-configs/README.md help.

    Raises:
        ConfigurationError: it has.
    """

    def ask(connection: psycopg.Connection[TupleRow]) -> float | None:
        row = connection.execute(QUERIES["position_age"], {"topic": settings.wait.topic}).fetchone()
        return None if row is None else row[0]

    ago_s = ask_postgres(settings, ask, notice)
    if ago_s is not None:
        raise ConfigurationError(
            f"sink_progress has the position of a sink of ours on {settings.wait.topic}, written {ago_s:.0f} s ago: "
            "rows that a Kafka Connect sink writes would pass for complete up to there, and what was finished long ago "
            "would be exported. Stop `waitreg sink`, and sinks of Kafka Connect if there are any; run `waitreg "
            "rebuild` with sink.kind=connect, which forgets that position; then run this again"
        )


def require_no_sweeper_at_work(settings: Settings, notice: Notice) -> None:
    """Refuse to continue where a sweeper has swept lately, whatever these settings say.

    Args:
        settings: whose registry it is.
        notice: gets a sentence when Postgres can't be asked; then only sweeper.kind counts.

    Raises:
        ConfigurationError: one has.
    """
    ago_s = ask_postgres(settings, lambda connection: last_sweep_ago_s(connection, settings.wait.topic), notice)
    refusal = refusal_of_sweep(ago_s, longest_silence_s(settings.sweeper.interval_s))
    if refusal is not None:
        raise ConfigurationError(refusal)


def refusal_of_sweep(ago_s: float | None, silent_most_s: float) -> str | None:
    """Judge by how long ago the last sweep began, and how long one at work may be silent, s. Pure."""
    if ago_s is None or ago_s > silent_most_s:
        return None
    return (
        f"a sweeper of ours swept {ago_s:.0f} s ago: together with a source it would export each expired registration "
        f"twice. Stop it; once it has been silent for {silent_most_s:.0f} s this is no longer refused"
    )


def require_no_stale_slot(new: Iterable[Connector], settings: Settings, notice: Notice) -> None:
    """Refuse new sources whose slot is older than a sweep: they would send once more what that exported.

    A row that stood in the outbox and wasn't sent when the source was removed is exported by the sweeper, and read from
    the slot all the same. A source without a slot begins with what is open.

    Args:
        new: sources that aren't there yet.
        settings: whose registry it is.
        notice: gets a sentence when Postgres can't be asked; then only the steps in connect-configs/README.md help.

    Raises:
        ConfigurationError: such a slot is there.
    """
    slots = [connector.config["slot.name"] for connector in new if "slot.name" in connector.config]
    if not slots:
        return

    def ask(connection: psycopg.Connection[TupleRow]) -> list[str]:
        given = {"slots": slots, "topic": settings.wait.topic}
        return [str(name) for (name,) in connection.execute(QUERIES["stale_slots"], given).fetchall()]

    stale = ask_postgres(settings, ask, notice)
    if stale:
        drop = "; ".join(f"select pg_drop_replication_slot('{name}')" for name in stale)
        raise ConfigurationError(
            f"nothing was changed: a sweeper of ours has swept since the last row came into expired_outbox, and what "
            f"the replication slot {', '.join(stale)} still holds from before it has exported: the source would export "
            f"that again. It has to start again: {drop}; run this again. If a connector then fails because its slot is "
            'gone, its offsets are still known: steps 1, 3 and 4 of "When a source has lost its place" '
            "(connect-configs/README.md)"
        )
