"""Does a sweeper of ours export what a source connector is about to export as well?"""

from __future__ import annotations

from typing import Final

from wait_registry.errors import WaitRegistryError
from wait_registry.settings.root import Settings

_LAST: Final = """
select extract(epoch from clock_timestamp() - max(started_at))::float8 from sweep where wait_topic = %(topic)s
"""
# As doctor's: a sweep takes a while.
_INTERVALS: Final = 3
_GRACE_S: Final = 60.0


def own_sweeper_at_work(settings: Settings) -> str | None:
    """Say so when a sweeper has swept lately; None when none has, or when Postgres doesn't tell us."""
    import psycopg

    from wait_registry.postgres.connection import connect

    try:
        with connect(settings.postgres, autocommit=True, application_name="waitreg connect") as connection:
            row = connection.execute(_LAST, {"topic": settings.wait.topic}).fetchone()
    except (WaitRegistryError, psycopg.Error):
        # Whoever applies connectors may have no business in Postgres.
        return None
    return warning(None if row is None else row[0], settings.sweeper.interval_s)


def warning(ago_s: float | None, interval_s: float) -> str | None:
    """Judge by how long ago the last sweep began, s. Pure."""
    if ago_s is None or ago_s > _INTERVALS * interval_s + _GRACE_S:
        return None
    return (
        f"a sweeper of ours swept {ago_s:.0f} s ago: if it still runs, stop it, or every registration that expires is "
        "exported twice"
    )
