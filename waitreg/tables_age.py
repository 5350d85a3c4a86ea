"""How old the tables are that a query reads: an answer must not be taken for the present if no sink writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from wait_registry.errors import WaitRegistryError
from wait_registry.kafka.clients import admin
from wait_registry.postgres.queries import Queries
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind
from wait_registry.settings.tree import Settings
from waitreg.connect.lag import lag_line, read_group_lag

# A sink writes at least every minute, idle or not.
LONGEST_SILENCE: Final = timedelta(minutes=2)
# How long a query waits for Kafka, s: its answer comes from Postgres and is worth more than its age.
KAFKA_LIMIT_S: Final = 3.0
KEPT_S: Final = 5.0
_SQL: Final = Queries("doctor")


class TablesAge(NamedTuple):
    """The state of the tables of one wait topic; all times are UTC.

    They show everything up to ``as_of``; a sink wrote last at ``written_at``. While a topic is read for the first time,
    ``unread`` offsets remain of what it held at the start.
    """

    topic: str
    as_of: datetime
    written_at: datetime
    now: datetime
    unread: int = 0

    @property
    def current(self) -> bool:
        """Whether a sink has written within two minutes."""
        return self.now - self.written_at <= LONGEST_SILENCE


def read_age(connection: psycopg.Connection[TupleRow], topic: str) -> TablesAge | None:
    """Return the age of this topic's tables, else of those written last, None if no sink has written any."""
    row = connection.execute(_SQL["tables_age"], {"topic": topic}).fetchone()
    return None if row is None else TablesAge(*row)


def age_line(connection: psycopg.Connection[TupleRow], settings: Settings, ask_kafka: Callable[[Settings], str]) -> str:
    """Return one line with the age of the tables, by our sink's position or by the group of a Connect sink.

    Args:
        connection: to the tables.
        settings: which sink there is.
        ask_kafka: returns the position of a Connect sink, as `connect_line` does.

    Raises:
        psycopg.errors.InsufficientPrivilege: this user may not read a table that the age is in; roll back, then
            continue.
    """
    if settings.sink.kind is SinkKind.SPARK:
        age = read_age(connection, settings.wait.topic)
        return _without_position(connection) if age is None else sentence(age)
    if settings.sweeper.kind is SweeperKind.CONNECT:  # no sweeper runs
        return ask_kafka(settings)
    row = connection.execute(_SQL["skipped_by_last_sweep"], {"topic": settings.wait.topic}).fetchone()
    stale_rows = [str(item["reason"]) for item in (row[0] if row else []) if "rows" in item]
    return "; ".join([ask_kafka(settings), *stale_rows])


def _without_position(connection: psycopg.Connection[TupleRow]) -> str:
    row = connection.execute(_SQL["has_rows"]).fetchone()
    if row is not None and row[0]:
        return (
            "age unknown: the tables have rows, but no sink of ours has recorded a position. If a Kafka Connect sink "
            "keeps them, set sink.kind=connect (WAITREG_SINK__KIND=connect)"
        )
    return "no tables yet: no sink has written anything, so an empty answer means nothing"


def connect_line(settings: Settings) -> str:
    """Ask Kafka how far a Connect sink is, and return it as one line, or why it is unknown."""
    limit_s = min(KAFKA_LIMIT_S, settings.kafka.request_timeout_s)
    kafka = settings.kafka.model_copy(update={"request_timeout_s": limit_s})
    try:
        return lag_line(read_group_lag(kafka, admin(kafka), settings.sink.connect_group, settings.wait.topic))
    except WaitRegistryError as error:
        return f"the position of the Kafka Connect sink is unknown: {error}"


class CachedLine:
    """Keeps a line for some seconds, however many pages show it. Of several threads one asks, and the others wait.

    Args:
        ask: returns the line; it doesn't raise.
        clock: returns the seconds of a clock that never steps.
    """

    def __init__(self, ask: Callable[[Settings], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._line: str | None = None
        self._asked_s = 0.0

    def __call__(self, settings: Settings) -> str:
        """Return the line of these settings, which are the same at each call."""
        with self._lock:
            if self._line is None or self._clock() - self._asked_s >= KEPT_S:
                self._line = self._ask(settings)
                self._asked_s = self._clock()
            return self._line


def sentence(age: TablesAge) -> str:
    """Return the age as one line, with a warning if no sink has written for two minutes."""
    age_text = in_words(age.now - age.as_of)
    as_of = f"tables of {age.topic} as of {age.as_of.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, {age_text} ago"
    if age.unread:
        as_of = f"tables of {age.topic} incomplete: they show finished records until {age.unread} more offsets are read"
    if age.current:
        return as_of
    return f"{as_of}; no sink is writing, so the answer is old (waitreg query sink_freshness)"


def in_words(span: timedelta) -> str:
    """Return a span in its two largest units: ``2 min 25 s``."""
    seconds = max(0, round(span.total_seconds()))
    counts = (seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60)
    shown = [f"{count} {unit}" for count, unit in zip(counts, ("d", "h", "min", "s"), strict=True)]
    first = next((place for place, count in enumerate(counts) if count), 3)
    return " ".join(shown[first : first + 2])
