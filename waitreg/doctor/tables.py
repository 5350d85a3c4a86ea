"""Check the tables in Postgres: whether their positions fit the topics that they are read from, and are moved on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from sink.position import require_fresh
from sink.progress import read_progress
from sink.read.log_ends import log_ends
from sink.read.start_positions import require_no_rows, wait_start
from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.kafka.topics import delete_retention_ms
from wait_registry.postgres.queries import Queries
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from waitreg.doctor import connect_tables
from waitreg.doctor.postgres import read_only_connection
from waitreg.tables_age import LONGEST_SILENCE, in_words, read_age, sentence

POSITION_FIX: Final = "run `waitreg rebuild`, once cluster, topic and schema are the right ones"
OPERATIONS_FIX: Final = "start `waitreg sink`, also alongside a Kafka Connect sink, or set operations.topic"
OPERATIONS_REBUILD: Final = "run `waitreg rebuild`, once the topic is the right one"
_REDRIVE: Final = Queries("redrive")
_RULE: Final = f"a sink writes at least every minute, over {in_words(LONGEST_SILENCE)} is a warning"


def position(settings: Settings) -> Iterator[Diagnosis]:
    """Check the sink's position in the wait topic as sink and sweeper do: same topic, within the log, not too old.

    The position of a Connect sink is that of its group.

    Raises:
        ConfigurationError: the message says what to do; so does that of the sink's error for an old position.
    """
    yield from connect_tables.position(settings) if settings.sink.kind is SinkKind.CONNECT else _position(settings)


def _position(settings: Settings) -> Iterator[Diagnosis]:
    client, topic = admin(settings.kafka), settings.wait.topic
    with read_only_connection(settings) as connection:
        recorded, _ = read_progress(connection, topic)
        if recorded is None:
            require_no_rows(connection, topic)
            yield ok(f"none yet: the first sink reads {topic} from its start")
            return
        # If a position is recorded, this only compares.
        start = wait_start(connection, client, settings.wait)
        ends = log_ends(connection, client, start.positions)
    retention_ms = delete_retention_ms(client, topic)
    require_fresh(start.positions, ends, retention_ms)
    unread = {name: ends.ends[name] - place.next_offset for name, place in start.positions.items()}
    ages = [ends.listed_at - place.position_time for name, place in start.positions.items() if unread[name] > 0]
    seen = f"{sum(unread.values())} offsets behind the end of {topic}"
    yield aged(seen, max(ages, default=timedelta()), timedelta(milliseconds=retention_ms))


def aged(seen: str, age: timedelta, retention: timedelta) -> Diagnosis:
    """Warn when half of the time has passed after which only a rebuild helps."""
    if age < retention / 4:
        return ok(seen)
    why = f"{seen}, and {in_words(age)} old: at {in_words(retention / 2)} sink and sweeper refuse it"
    return warning(why, "start a sink now, before only `waitreg rebuild` helps")


def freshness(settings: Settings) -> Iterator[Diagnosis]:
    """Report when a sink wrote last; a running one writes at least every minute, but a Connect sink reports nothing."""
    yield from connect_tables.freshness(settings) if settings.sink.kind is SinkKind.CONNECT else _freshness(settings)


def _freshness(settings: Settings) -> Iterator[Diagnosis]:
    with read_only_connection(settings) as connection:
        age = read_age(connection, settings.wait.topic)
    if age is None or age.topic != settings.wait.topic:
        yield ok(f"no sink has read {settings.wait.topic} yet")
    elif age.current:
        yield ok(f"{sentence(age)} ({_RULE})")
    else:
        fix = "start `waitreg sink`, or read its log and /health/ready: queries and the sweeper see old rows"
        yield warning(f"{sentence(age)} ({_RULE})", fix)


def operations(settings: Settings) -> Iterator[Diagnosis]:
    """Compare the position of the tables with the operations topic: the same topic, within its log, not far behind."""
    topic, client = settings.operations.topic, admin(settings.kafka)
    identity = describe_topic(client, topic)
    with read_only_connection(settings) as connection:
        row = connection.execute(_REDRIVE["position"], {"topic": topic}).fetchone()
    if row is None:
        yield warning(f"no sink has read {topic} yet: `waitreg dlq redrive` refuses to start", OPERATIONS_FIX)
        return
    if row[3] is not None:
        fix = f"set operations.topic to {row[3]}"
        yield error(f"{topic} was replaced by {row[3]}: `waitreg dlq redrive` refuses to start", fix)
        return
    first, end = earliest_offsets(client, topic, [0])[0], end_offsets(client, topic, [0], "read_uncommitted")[0]
    yield operations_line(settings, row[0] == identity.topic_id, int(row[1]), (first, end))


def operations_line(settings: Settings, same: bool, position: int, log: tuple[int, int]) -> Diagnosis:
    """Judge a position.

    Args:
        settings: name the topic and the longest tail.
        same: whether the topic is the recorded one.
        position: the next offset to be read.
        log: the first offset and the end.
    """
    topic, most = settings.operations.topic, settings.redrive.max_tail_records
    if not same:
        return error(
            f"{topic} was recreated, and its marks are only in the tables", "set operations.topic to a new name"
        )
    if not log[0] <= position <= log[1]:
        return error(
            f"the tables are at offset {position} of {topic}, whose log holds {log[0]} to {log[1]}", OPERATIONS_REBUILD
        )
    seen = f"{log[1] - position} offsets behind the end of {topic}"
    if log[1] - position > most:
        return warning(f"{seen}, more than redrive.max_tail_records = {most}: redrives wait", OPERATIONS_FIX)
    return ok(seen)
