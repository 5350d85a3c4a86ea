"""What Postgres tells of who was at work on a registry; who applies connectors may have no business there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from wait_registry.errors import WaitRegistryError
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

T = TypeVar("T")
Aside = Callable[[str], None]


def asked_of_postgres(settings: Settings, ask: Callable[[psycopg.Connection[TupleRow]], T], aside: Aside) -> T | None:
    """Put a question to Postgres.

    Args:
        settings: where it is.
        ask: puts it, on a connection that commits each statement by itself.
        aside: gets a sentence when Postgres doesn't tell us.

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
        aside(
            f"Postgres doesn't tell us ({error_text(error)}): whether a sink or a sweeper of ours is at work, or has "
            "left anything behind, isn't looked at. The steps for a change from them are in connect-configs/README.md"
        )
        return None
