"""Is what has expired being exported?"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from sweeper.health import longest_silence_s
from wait_registry.cli.checks.postgres_server import asking
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.settings.sweeper import SweeperKind

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

    from wait_registry.settings.root import Settings

DUE: Final = "expired registrations"
LAST: Final = "last sweep"
START: Final = "start `waitreg sweeper`, or look at its log and /health/ready"
LOOK_AT_SOURCE: Final = (
    "`waitreg connect status`: do expired.source and expired.tombstones run? Then the worker's log, and how fresh the "
    "view is: nothing is exported that it doesn't show"
)
_NOW: Final = "select clock_timestamp()"
_LAST: Final = """
select result, due, counts, skipped, extract(epoch from clock_timestamp() - started_at)::float8
from sweep
where wait_topic = %(topic)s
order by started_at desc
limit 1
"""


def due(settings: Settings) -> Iterator[Diagnosis]:
    """Ask what a sweeper would find due, and since when."""
    from sweeper.due import find_due

    with asking(settings) as connection:
        found = find_due(connection, settings, settings.wait.partitions)
        row = connection.execute(_NOW).fetchone()
    assert row is not None  # a select without from always has one row
    yield due_line(found.rows, found.oldest, row[0], settings)


def due_line(rows: int, oldest: datetime | None, now: datetime, settings: Settings) -> Diagnosis:
    """Warn when something has been due for longer than a working sweeper, or a source in its place, leaves it. Pure."""
    if oldest is None:
        return Diagnosis(DUE, Severity.OK, "none is due")
    since_s = (now - oldest).total_seconds() - settings.wait.skew_allowance_s
    seen = f"{rows} due, the oldest for {since_s:.0f} s"
    if since_s <= longest_silence_s(settings.sweeper.interval_s):
        return Diagnosis(DUE, Severity.OK, seen)
    by_connect = settings.sweeper.kind is SweeperKind.CONNECT
    fix = LOOK_AT_SOURCE if by_connect else f"{START}, and at `last sweep` here"
    return Diagnosis(DUE, Severity.WARNING, f"{seen}: nobody exports them", fix)


def last_sweep_ago_s(connection: psycopg.Connection[TupleRow], topic: str) -> float | None:
    """Return how long ago the last sweep of a wait topic began, s; None when none has."""
    row = connection.execute(_LAST, {"topic": topic}).fetchone()
    return None if row is None else float(row[-1])


def last(settings: Settings) -> Iterator[Diagnosis]:
    """Say what the last sweep did and when it was: a sweeper writes each one down, also one with nothing due."""
    with asking(settings) as connection:
        row = connection.execute(_LAST, {"topic": settings.wait.topic}).fetchone()
    if row is None:
        yield Diagnosis(LAST, Severity.OK, "none is written down yet")
        return
    result, due_rows, counts, skipped, ago_s = row
    done = (f"{counts.get(outcome, 0)} {outcome}" for outcome in ("exported", "redelivered"))
    seen = f"{ago_s:.0f} s ago, {result}: {due_rows} due, {', '.join(done)}"
    reasons = dict.fromkeys(str(item.get("reason", item)) for item in skipped)
    # A sweep that found rows which only a rebuild removes is done all the same.
    if result in ("partial", "failed") or (result == "done" and reasons):
        told = f"{seen}; skipped: {'; '.join(reasons)}" if reasons else seen
        yield Diagnosis(LAST, Severity.WARNING, told, "fix what it names; the next sweep tries again by itself")
    elif ago_s > longest_silence_s(settings.sweeper.interval_s):
        every = f"{settings.sweeper.interval_s:g} s"
        told = f"{seen}; one is due every {every}: no sweeper is at work"
        yield Diagnosis(LAST, Severity.WARNING, told, START)
    else:
        yield Diagnosis(LAST, Severity.OK, seen)
