"""Wait until the sinks have read the log: before that a source would export what was settled long ago."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaError, TopicPartition

from wait_registry.cli.connect.apply import Pace, Report
from wait_registry.cli.connect.postgres_checks import QUERIES, Notice, ask_postgres
from wait_registry.cli.connect.roles import keeps_tables, sink_group, sink_topics
from wait_registry.cli.connect.state import ConnectorState
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import Admin, admin, consumer_config
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.errors import is_access_problem, is_unknown_topic, kafka_failure
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

POLL_S: Final = 0.5
REPORT_EVERY_S: Final = 10.0
# What a worker commits sinks' offsets by, unless told otherwise (offset.flush.interval.ms).
COMMIT_S: Final = 60.0

Place = tuple[str, int]
Offsets = Mapping[Place, int]


class SinksBehind(TransientError):
    """The sinks don't reach what was the log's end: fix them, then apply the source again."""


@dataclass(frozen=True, slots=True)
class TableSink:
    """A sink that keeps the view, and what it reads; ``name`` is for people."""

    name: str
    group: str
    topics: tuple[str, ...]


def table_sinks(states: Iterable[ConnectorState], settings: Settings) -> list[TableSink]:
    """Return the sinks that keep the view; where none reads the wait topic, what is known of the one elsewhere."""
    own = [state for state in states if keeps_tables(state.config)]
    found = [
        TableSink(state.name, sink_group(state.name, state.config), tuple(sink_topics(state.config))) for state in own
    ]
    if any(settings.wait.topic in sink.topics for sink in found):
        return found
    group = settings.sink.connect_group
    return [*found, TableSink(f"the sink of group {group}", group, (settings.wait.topic,))]


def await_none_left(
    sink: str, look: str, count_left: Callable[[], int], patience_s: float, report: Report, pace: Pace
) -> None:
    """Return once a sink lacks nothing of what stood in the log when the wait began.

    Args:
        sink, look: for people, and where they can look at it.
        count_left: how many offsets it lacks now.
        patience_s: how long that may stay as it is, s.
        report: gets a word, the sink and how far it is, at intervals.
        pace: clock and sleep.

    Raises:
        SinksBehind: it makes no progress.
    """
    least: int | None = None
    since = reported_at = pace.monotonic()
    while count := count_left():
        now = pace.monotonic()
        if least is None or count < least:
            least, since = count, now
        if now - since > patience_s:
            raise SinksBehind(
                f"{sink} is {count} offsets behind ({look}) and hasn't moved for {now - since:.0f} s: no source is "
                "made before it has read the log, or registrations that were settled long ago would be exported. "
                "Fix that, then run this again"
            )
        if now >= reported_at:
            report("waiting for", sink, f"{count} offsets to what was the log's end")
            reported_at = now + REPORT_EVERY_S
        pace.sleep(POLL_S)


class CaughtUp:
    """Waits until sinks have come to where the log ended when the wait began."""

    def __init__(self, settings: Settings, report: Report, pace: Pace = time) -> None:
        """Describe how.

        Args:
            settings: the cluster, and how long a sink may make no progress: connect.start_timeout_s, and as much as a
                worker takes between two commits.
            report: gets a word, a sink and how far it is, at intervals.
            pace: clock and sleep.
        """
        self._settings = settings
        self._report = report
        self._pace = pace
        self._admin: Admin = admin(settings.kafka)

    def wait(self, sinks: Iterable[TableSink]) -> None:
        """Return once all have.

        Raises:
            SinksBehind: one makes no progress.
            TransientError: the cluster doesn't answer.
            ConfigurationError: a topic is missing, or we may not see a group (DESCRIBE) or a topic.
        """
        for sink in sinks:
            self._wait_for(sink)

    def _wait_for(self, sink: TableSink) -> None:
        ends = self._ends(sink)
        patience_s = self._settings.connect.start_timeout_s + COMMIT_S
        count_left = partial(self._count_left, sink, ends)
        look = f"group {sink.group}, `waitreg connect status`"
        await_none_left(sink.name, look, count_left, patience_s, self._report, self._pace)

    def _count_left(self, sink: TableSink, ends: Offsets) -> int:
        deadline = self._pace.monotonic() + self._settings.connect.start_timeout_s
        while True:
            try:
                return sum(self._left(sink, ends).values())
            except TransientError:
                # The coordinator of a group that is new to the broker is only being elected.
                if self._pace.monotonic() > deadline:
                    raise
                self._pace.sleep(POLL_S)

    def _ends(self, sink: TableSink) -> dict[Place, int]:
        found: dict[Place, int] = {}
        for topic in sink.topics:
            try:
                numbers = range(describe_topic(self._admin, topic).partitions)
            except ConfigurationError as error:
                # A dead letter topic that the source is going to make.
                if not is_unknown_topic(error):
                    raise
                continue
            found |= {(topic, number): end for number, end in end_offsets(self._admin, topic, numbers).items()}
        return found

    def _left(self, sink: TableSink, ends: Offsets) -> dict[Place, int]:
        """Return how many offsets each partition lacks in which there is a record before its end."""
        committed = committed_offsets(self._settings.kafka, sink.group, list(ends))
        begun: dict[Place, int] = {}
        for topic in sink.topics:
            numbers = [number for name, number in ends if name == topic]
            first = earliest_offsets(self._admin, topic, numbers)
            begun |= {(topic, number): offset for number, offset in first.items()}
        reached = {place: max(found.offset, begun[place]) for found in committed for place in [_place(found)]}
        behind = {place: at for place, at in reached.items() if at < ends[place]}
        return {place: ends[place] - behind[place] for place in self._with_records(behind, ends)}

    def _with_records(self, behind: Offsets, ends: Offsets) -> set[Place]:
        """Return the places where a record stands: a sink commits no marker of a transaction that follows its last."""
        if not behind:
            return set()
        consumer = Consumer(
            consumer_config(
                self._settings.kafka,
                **{
                    # Never joined and never committed to; the client can't do without one.
                    "group.id": f"waitreg.connect.{self._settings.wait.topic}",
                    "enable.partition.eof": True,
                    "auto.offset.reset": "earliest",
                    "queued.max.messages.kbytes": 1024,
                },
            )
        )
        try:
            consumer.assign([TopicPartition(*place, offset) for place, offset in behind.items()])
            return _until_known(consumer, behind, ends, self._pace.monotonic, self._settings.kafka.request_timeout_s)
        finally:
            consumer.close()


def _until_known(
    consumer: Consumer, behind: Offsets, ends: Offsets, monotonic: Callable[[], float], limit_s: float
) -> set[Place]:
    unknown, holding = set(behind), set()
    deadline = monotonic() + limit_s
    # What doesn't answer in time counts as behind: it is asked again.
    while unknown and monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None:
            continue
        error, place = message.error(), (str(message.topic()), int(message.partition() or 0))
        if error is not None and is_access_problem(error):
            return set(behind)  # without READ, markers and records look the same
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise kafka_failure(error, f"reading {place[0]}-{place[1]}")
        if place in unknown:
            unknown.discard(place)
            if error is None and int(message.offset() or 0) < ends[place]:
                holding.add(place)
            consumer.incremental_unassign([TopicPartition(*place)])
    return holding | unknown


def _place(found: TopicPartition) -> Place:
    return str(found.topic), int(found.partition)


NAME: Final = "waitreg sink"


class SparkSinkCaughtUp:
    """Waits until our sink has come to where the wait topic ended when the wait began.

    The outbox waits for the view to be complete up to a row's expiry. A sweeper's tombstone comes later than that: by
    as much as the sweeper was late.
    """

    def __init__(self, settings: Settings, report: Report, notice: Notice, pace: Pace = time) -> None:
        """Describe how.

        Args:
            settings: cluster and Postgres, and how long the sink may make no progress: connect.start_timeout_s, and the
                pause between two rows of progress of an idle one.
            report: gets a word, the sink and how far it is, at intervals.
            notice: gets a sentence when Postgres can't say where the sink is: it isn't awaited then.
            pace: clock and sleep.
        """
        self._settings = settings
        self._report = report
        self._aside = notice
        self._pace = pace

    def wait(self) -> None:
        """Return once it has; at once where no sink of ours has been: by its rows alone our sweeper exports.

        Raises:
            SinksBehind: it makes no progress.
            TransientError: the cluster doesn't answer.
            ConfigurationError: the wait topic is missing, or not ours to see.
        """
        positions = self._positions()
        if not positions:
            return
        client: Admin = admin(self._settings.kafka)
        # An open transaction's records too: a sweeper that was killed may have left one that is going to be committed.
        ends = end_offsets(client, self._settings.wait.topic, list(positions), "read_uncommitted")
        await_none_left(
            NAME,
            "`waitreg query sink_freshness`",
            lambda: self._count_left(ends),
            self._settings.connect.start_timeout_s + self._settings.sink.idle_progress_s,
            self._report,
            self._pace,
        )

    def _count_left(self, ends: dict[int, int]) -> int:
        # A Postgres that has gone away meanwhile shows no progress.
        positions = self._positions() or dict.fromkeys(ends, 0)
        return sum(max(0, end - positions.get(number, 0)) for number, end in ends.items())

    def _positions(self) -> dict[int, int] | None:
        def ask(connection: psycopg.Connection[TupleRow]) -> dict[int, int]:
            return dict(connection.execute(QUERIES["positions"], {"topic": self._settings.wait.topic}).fetchall())

        return ask_postgres(self._settings, ask, self._aside)
