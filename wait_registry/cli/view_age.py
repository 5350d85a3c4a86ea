"""How old the view is that a query reads: an answer must not be taken for the present when no sink writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from wait_registry.cli.connect.lag_lines import lag_line, read_connect_lag

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

    from wait_registry.settings.root import Settings

# A sink writes at least every minute, idle or not.
SILENT_MOST: Final = timedelta(minutes=2)
# What a query waits for Kafka, s: its answer comes from Postgres and is worth more than its age.
ASK_LIMIT_S: Final = 3.0
_LEFT_BY_LAST_SWEEP: Final = """
select skipped
from sweep
where wait_topic = %(topic)s
order by started_at desc
limit 1
"""
# One wait topic: the one of the settings if the view has it, else the one that was written last.
_ASKED: Final = """
select topic, min(position_time), max(seen_at), now(), sum(greatest(read_until - next_offset, 0))::bigint
from sink_progress
group by topic
order by topic = %(topic)s desc, max(seen_at) desc
limit 1
"""


def age_line(connection: psycopg.Connection[TupleRow], settings: Settings) -> str:
    """Say in one line how old the view is: by the position of our sink, or by the group of a Connect sink.

    Raises:
        psycopg.errors.InsufficientPrivilege: this user may not read sink_progress, or beside Connect the table sweep;
            roll back, then go on.
    """
    from wait_registry.settings.sink import SinkKind
    from wait_registry.settings.sweeper import SweeperKind

    if settings.sink.kind is SinkKind.SPARK:
        return view_line(read_view_age(connection, settings.wait.topic))
    if settings.sweeper.kind is SweeperKind.CONNECT:  # nobody sweeps
        return _connect_line(settings)
    row = connection.execute(_LEFT_BY_LAST_SWEEP, {"topic": settings.wait.topic}).fetchone()
    ghosts = [str(item["reason"]) for item in (row[0] if row else []) if "rows" in item]
    return "; ".join([_connect_line(settings), *ghosts])


def _connect_line(settings: Settings) -> str:
    from wait_registry.errors import WaitRegistryError
    from wait_registry.kafka.clients import admin

    limit_s = min(ASK_LIMIT_S, settings.kafka.request_timeout_s)
    kafka = settings.kafka.model_copy(update={"request_timeout_s": limit_s})
    hurried = settings.model_copy(update={"kafka": kafka})
    try:
        return lag_line(read_connect_lag(hurried, admin(kafka)))
    except WaitRegistryError as error:
        return f"how far the Kafka Connect sink is can't be told: {error}"


class ViewAge(NamedTuple):
    """What stands in the view of a wait topic: everything up to ``as_of``, written last at ``heard_from``; all UTC.

    But for a log that is read for the first time: ``unread`` offsets are left of what stood in it then.
    """

    topic: str
    as_of: datetime
    heard_from: datetime
    now: datetime
    unread: int = 0


def read_view_age(connection: psycopg.Connection[TupleRow], topic: str) -> ViewAge | None:
    """Read how old the view of a wait topic is.

    Args:
        connection: with our schema.
        topic: the wait topic.

    Returns:
        None when no sink has written anything yet.

    Raises:
        psycopg.errors.InsufficientPrivilege: this user may not read sink_progress; roll back, then go on.
    """
    row = connection.execute(_ASKED, {"topic": topic}).fetchone()
    return None if row is None else ViewAge(*row)


def view_line(age: ViewAge | None) -> str:
    """Say it in one line, with a warning when nobody has written for over two minutes. Pure."""
    if age is None:
        return "no view yet: no sink has written anything, so an empty answer says nothing"
    as_of = f"view of {age.topic} as of {age.as_of.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, {ago(age.now - age.as_of)}"
    if age.unread:
        as_of = f"view of {age.topic} in the making: {age.unread} offsets to go until what was finished is gone from it"
    if age.now - age.heard_from <= SILENT_MOST:
        return as_of
    return f"{as_of}; no sink is writing: the answer is old (waitreg query sink_freshness)"


def ago(span: timedelta) -> str:
    """Return a span in its two largest units: ``2 min 25 s ago``."""
    seconds = max(0, round(span.total_seconds()))
    parts = [
        (seconds // 86_400, "d"),
        (seconds // 3600 % 24, "h"),
        (seconds // 60 % 60, "min"),
        (seconds % 60, "s"),
    ]
    first = next((place for place, (count, _) in enumerate(parts) if count), len(parts) - 1)
    return " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2]) + " ago"
