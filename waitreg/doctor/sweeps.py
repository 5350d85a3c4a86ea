"""Check whether expired registrations are exported."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from sweeper.due import find_due
from sweeper.health import longest_silence_s
from wait_registry.diagnosis import Diagnosis, ok, warning
from wait_registry.postgres.queries import Queries
from wait_registry.settings.sweeper import SweeperKind
from wait_registry.settings.tree import Settings
from waitreg.doctor.postgres import postgres_now, read_only_connection

START: Final = "start `waitreg sweeper`, or read its log and /health/ready"
LOOK_AT_SOURCE: Final = (
    "check whether expired.source and expired.tombstones run (GET /connectors?expand=status of Kafka Connect's REST "
    "API). Then read the worker's log, and check how current the tables are: a source exports only what they show"
)
_SQL: Final = Queries("doctor")


def due(settings: Settings) -> Iterator[Diagnosis]:
    """Ask what a sweeper would find due, and since when."""
    with read_only_connection(settings) as connection:
        found = find_due(connection, settings, settings.wait.partitions)
        now = postgres_now(connection)
    yield due_line(found.rows, found.oldest, now, settings)


def due_line(rows: int, oldest: datetime | None, now: datetime, settings: Settings) -> Diagnosis:
    """Warn if a row has been due for longer than a running sweeper, or a source in its place, takes."""
    if oldest is None:
        return ok("none is due")
    since_s = (now - oldest).total_seconds() - settings.wait.skew_allowance_s
    seen = f"{rows} due, the oldest for {since_s:.0f} s"
    if since_s <= longest_silence_s(settings.sweeper.interval_s):
        return ok(seen)
    by_connect = settings.sweeper.kind is SweeperKind.CONNECT
    fix = LOOK_AT_SOURCE if by_connect else f"{START}, and see `last sweep` here"
    return warning(f"{seen}: they are not exported", fix)


def last(settings: Settings) -> Iterator[Diagnosis]:
    """Report what the last sweep did and when it was; a sweeper records each sweep, also one without due rows."""
    with read_only_connection(settings) as connection:
        row = connection.execute(_SQL["last_sweep"], {"topic": settings.wait.topic}).fetchone()
    if row is None:
        yield ok("none is recorded yet")
        return
    result, due_rows, counts, skipped, ago_s = row
    done = (f"{counts.get(outcome, 0)} {outcome}" for outcome in ("exported", "redelivered"))
    seen = f"{ago_s:.0f} s ago, {result}: {due_rows} due, {', '.join(done)}"
    reasons = dict.fromkeys(str(item.get("reason", item)) for item in skipped)
    # A sweep that found rows which only a rebuild removes is done all the same.
    if result in ("partial", "failed") or (result == "done" and reasons):
        message = f"{seen}; skipped: {'; '.join(reasons)}" if reasons else seen
        yield warning(message, "fix what it names; the next sweep tries again automatically")
    elif ago_s > longest_silence_s(settings.sweeper.interval_s):
        message = f"{seen}; one is due every {settings.sweeper.interval_s:g} s: no sweeper is running"
        yield warning(message, START)
    else:
        yield ok(seen)
