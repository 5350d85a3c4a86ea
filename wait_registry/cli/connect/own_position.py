"""Has a sink of ours left its position? Beside a Connect sink that would be a lie about rows which it never wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wait_registry.cli.connect.asked_of_postgres import Aside, asked_of_postgres
from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

_SEEN: Final = "select extract(epoch from clock_timestamp() - max(seen_at))::float8 from sink_progress where topic = %s"


def require_no_position_of_ours(settings: Settings, aside: Aside) -> None:
    """Refuse connectors of a registry that a Connect sink keeps while it still has the position of a sink of ours.

    A sweeper or a sink of ours that begins again, and the outbox at once, would take the Connect sink's rows for
    complete up to there, and export what was finished long ago.

    Args:
        settings: with sink.kind=connect.
        aside: gets a sentence when Postgres doesn't tell us; the steps in connect-configs/README.md must do then.

    Raises:
        ConfigurationError: it has.
    """

    def ask(connection: psycopg.Connection[TupleRow]) -> float | None:
        row = connection.execute(_SEEN, (settings.wait.topic,)).fetchone()
        return None if row is None else row[0]

    ago_s = asked_of_postgres(settings, ask, aside)
    if ago_s is not None:
        raise ConfigurationError(
            f"sink_progress has the position of a sink of ours on {settings.wait.topic}, written {ago_s:.0f} s ago: "
            "rows that a Kafka Connect sink writes would pass for complete up to there, and what was finished long ago "
            "would be exported. Stop `waitreg sink`, and sinks of Kafka Connect if there are any; run `waitreg "
            "rebuild` with sink.kind=connect, which forgets that position; then run this again"
        )
