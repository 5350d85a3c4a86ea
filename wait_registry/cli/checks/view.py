"""The view in Postgres: does its position fit the log, and is anybody moving it?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from wait_registry.cli.checks import connect_view
from wait_registry.cli.checks.postgres_server import asking
from wait_registry.cli.view_age import SILENT_MOST
from wait_registry.diagnosis import Diagnosis, Severity

if TYPE_CHECKING:
    from wait_registry.settings.root import Settings

POSITION: Final = "position of the view"
POSITION_FIX: Final = "`waitreg rebuild`, once the cluster, the topic and the schema are the right ones"
FRESHNESS: Final = "freshness of the view"
_HEARD: Final = """
select now() - max(seen_at), now() - min(position_time)
from sink_progress
where topic = %(topic)s
"""


def position(settings: Settings) -> Iterator[Diagnosis]:
    """Check the sink's position in the wait topic as sink and sweeper do: same topic, within the log, not too old.

    A Connect sink's is that of its group. Raises ConfigurationError or `sink.position.PositionTooOld`: their messages
    say what to do.
    """
    from wait_registry.settings.sink import SinkKind

    yield from connect_view.position(settings) if settings.sink.kind is SinkKind.CONNECT else _position(settings)


def _position(settings: Settings) -> Iterator[Diagnosis]:
    from sink.position import require_fresh
    from sink.progress import read_progress
    from sink.starting import log_ends, require_no_rows, wait_start
    from wait_registry.kafka.clients import admin
    from wait_registry.kafka.topics import delete_retention_ms

    client, topic = admin(settings.kafka), settings.wait.topic
    with asking(settings) as connection:
        recorded, _ = read_progress(connection, topic)
        if recorded is None:
            require_no_rows(connection, topic)
            yield Diagnosis(POSITION, Severity.OK, f"none yet: the first sink reads {topic} from its beginning")
            return
        # Where something is recorded, this only compares.
        start = wait_start(connection, client, settings.wait)
        ends = log_ends(connection, client, start.positions)
    retention_ms = delete_retention_ms(client, topic)
    require_fresh(start.positions, ends, retention_ms)
    unread = {name: ends.ends[name] - place.next_offset for name, place in start.positions.items()}
    ages = [ends.listed_at - place.position_time for name, place in start.positions.items() if unread[name] > 0]
    seen = f"{sum(unread.values())} offsets behind the end of {topic}"
    yield aged(seen, max(ages, default=timedelta()), timedelta(milliseconds=retention_ms))


def aged(seen: str, age: timedelta, retention: timedelta) -> Diagnosis:
    """Warn when half of the time is gone after which only a rebuild helps. Pure."""
    if age < retention / 4:
        return Diagnosis(POSITION, Severity.OK, seen)
    why = f"{seen}, and {_words(age)} old: at {_words(retention / 2)} sink and sweeper refuse it"
    return Diagnosis(POSITION, Severity.WARNING, why, "start a sink now, before only `waitreg rebuild` helps")


def freshness(settings: Settings) -> Iterator[Diagnosis]:
    """Say when a sink wrote last: a running one does at least every minute, idle or not; a Connect one says nothing."""
    from wait_registry.settings.sink import SinkKind

    yield from connect_view.freshness(settings) if settings.sink.kind is SinkKind.CONNECT else _freshness(settings)


def _freshness(settings: Settings) -> Iterator[Diagnosis]:
    with asking(settings) as connection:
        row = connection.execute(_HEARD, {"topic": settings.wait.topic}).fetchone()
    silent, behind = row if row is not None else (None, None)
    if silent is None:
        yield Diagnosis(FRESHNESS, Severity.OK, f"no sink has read {settings.wait.topic} yet")
        return
    yield heard(silent, behind)


def heard(silent: timedelta, behind: timedelta) -> Diagnosis:
    """Warn when nobody has written for over two minutes, the age from which `waitreg query` calls its answer old. Pure.

    Args:
        silent: since a sink wrote last.
        behind: since the moment that the view shows.
    """
    seen = f"a sink wrote {_words(silent)} ago what the log held {_words(behind)} ago"
    rule = f"one writes at least every minute, over {_words(SILENT_MOST)} is a warning"
    if silent <= SILENT_MOST:
        return Diagnosis(FRESHNESS, Severity.OK, f"{seen} ({rule})")
    fix = "start `waitreg sink`, or look at its log and /health/ready: what people and the sweeper see is old"
    return Diagnosis(FRESHNESS, Severity.WARNING, f"{seen}: no sink is at work ({rule})", fix)


def _words(duration: timedelta) -> str:
    seconds = duration.total_seconds()
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
