"""Wait until the sinks have read the log: before that a source would export what was settled long ago."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from confluent_kafka import Consumer, KafkaError, TopicPartition

from wait_registry.cli.connect.cluster import Pace, Report
from wait_registry.cli.connect.lag import read_group_lag
from wait_registry.cli.connect.postgres_checks import QUERIES, Notice, ask_postgres
from wait_registry.cli.connect.roles import keeps_tables, sink_group, sink_topics
from wait_registry.cli.connect.state import ConnectorState
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import Admin, admin, consumer_config
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.errors import is_access_problem, is_unknown_topic, kafka_failure
from wait_registry.kafka.positions import end_offsets
from wait_registry.kafka.requests import persistently
from wait_registry.settings.root import Settings

POLL_S: Final = 0.5
REPORT_EVERY_S: Final = 10.0
# How often a worker commits the offsets of sinks by default (offset.flush.interval.ms).
COMMIT_S: Final = 60.0

Offsets = Mapping[int, int]


class SinksBehind(TransientError):
    """The sinks don't reach what was the log's end: fix them, then apply the source again."""


@dataclass(frozen=True, slots=True)
class TableSink:
    """A sink that keeps the tables, and what it reads; ``name`` is for people."""

    name: str
    group: str
    topics: tuple[str, ...]


def table_sinks(states: Iterable[ConnectorState], settings: Settings) -> list[TableSink]:
    """Return the sinks that keep the tables; if none reads the wait topic, also the one of sink.connect_group."""
    own = [state for state in states if keeps_tables(state.config)]
    found = [
        TableSink(state.name, sink_group(state.name, state.config), tuple(sink_topics(state.config))) for state in own
    ]
    if any(settings.wait.topic in sink.topics for sink in found):
        return found
    group = settings.sink.connect_group
    return [*found, TableSink(f"the sink of group {group}", group, (settings.wait.topic,))]


def await_connect_sinks(sinks: Iterable[TableSink], settings: Settings, report: Report, pace: Pace = time) -> None:
    """Return once sinks of Kafka Connect have read what the log held when the wait began.

    Args:
        sinks: those to wait for, one after the other.
        settings: the cluster. A sink may make no progress for connect.start_timeout_s and the time between two commits.
        report: gets a word, a sink and how far it is, at intervals.
        pace: clock and sleep.

    Raises:
        SinksBehind: one makes no progress.
        TransientError: the cluster doesn't answer.
        ConfigurationError: a topic is missing, or we have no permission to see a group (DESCRIBE) or a topic.
    """
    client = admin(settings.kafka)
    for sink in sinks:
        # The coordinator of a group that is new to the broker may not be elected yet.
        count = partial(persistently, client, partial(_count_left, client, settings, sink.group, _ends(client, sink)))
        see = f"group {sink.group}, `waitreg connect status`"
        _await_none_left(sink.name, see, count, settings.connect.start_timeout_s + COMMIT_S, report, pace)


def await_spark_sink(settings: Settings, report: Report, notice: Notice, pace: Pace = time) -> None:
    """Return once our sink has read what the log held when the wait began; at once if it has recorded no position.

    The outbox waits until the tables are complete up to a row's expiry. A sweeper's tombstone comes later than that, by
    as much as the sweeper was late.

    Args:
        settings: cluster and Postgres. The sink may make no progress for connect.start_timeout_s and the pause between
            two positions of an idle one.
        report: gets a word, the sink and how far it is, at intervals.
        notice: gets a sentence if Postgres can't be asked where the sink is; then there is no wait.
        pace: clock and sleep.

    Raises:
        SinksBehind: it makes no progress.
        TransientError: the cluster doesn't answer.
        ConfigurationError: the wait topic is missing, or we have no permission to see it.
    """
    topic = settings.wait.topic

    def positions() -> dict[int, int]:
        return dict(ask_postgres(settings, QUERIES["positions"], {"topic": topic}, notice) or ())

    start = positions()
    if not start:
        return
    # Records of an open transaction too: a sweeper that was killed may have left one that will be committed.
    ends = end_offsets(admin(settings.kafka), topic, list(start), "read_uncommitted")

    def count_left() -> int:
        # If Postgres has become unavailable, the sink makes no progress.
        reached = positions()
        return sum(max(0, end - reached.get(number, 0)) for number, end in ends.items())

    patience_s = settings.connect.start_timeout_s + settings.sink.idle_progress_s
    _await_none_left("waitreg sink", "`waitreg query sink_freshness`", count_left, patience_s, report, pace)


def _await_none_left(
    sink: str, see: str, count_left: Callable[[], int], patience_s: float, report: Report, pace: Pace
) -> None:
    least: int | None = None
    since = reported_at = pace.monotonic()
    while count := count_left():
        now = pace.monotonic()
        if least is None or count < least:
            least, since = count, now
        if now - since > patience_s:
            raise SinksBehind(
                f"{sink} is {count} offsets behind ({see}) and hasn't moved for {now - since:.0f} s. No source is "
                "created before it has read the log, or settled registrations would be exported: fix the sink, then "
                "run this again"
            )
        if now >= reported_at:
            report("waiting for", sink, f"{count} offsets to what was the log's end")
            reported_at = now + REPORT_EVERY_S
        pace.sleep(POLL_S)


def _ends(client: Admin, sink: TableSink) -> dict[str, Offsets]:
    found: dict[str, Offsets] = {}
    for topic in sink.topics:
        try:
            found[topic] = end_offsets(client, topic, range(describe_topic(client, topic).partitions))
        except ConfigurationError as error:
            # A dead letter topic that the source will create.
            if not is_unknown_topic(error):
                raise
    return found


def _count_left(client: Admin, settings: Settings, group: str, topics: Mapping[str, Offsets]) -> int:
    """Count the offsets that a group lacks, in partitions that have a record before their end."""
    count = 0
    for topic, ends in topics.items():
        reached = read_group_lag(settings.kafka, client, group, topic).reached
        behind = {number: reached[number] for number, end in ends.items() if reached[number] < end}
        count += sum(ends[number] - behind[number] for number in _with_records(settings, topic, behind, ends))
    return count


def _with_records(settings: Settings, topic: str, behind: Offsets, ends: Offsets) -> set[int]:
    """Return the partitions with a record left: a sink doesn't commit the marker of a transaction after its last."""
    if not behind:
        return set()
    own = {
        # It never joins and commits nothing, but the client requires a group.
        "group.id": f"waitreg.connect.{settings.wait.topic}",
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "queued.max.messages.kbytes": 1024,
    }
    consumer = Consumer(consumer_config(settings.kafka, **own))
    try:
        consumer.assign([TopicPartition(topic, number, offset) for number, offset in behind.items()])
        return _until_known(consumer, topic, behind, ends, time.monotonic() + settings.kafka.request_timeout_s)
    finally:
        consumer.close()


def _until_known(consumer: Consumer, topic: str, behind: Offsets, ends: Offsets, deadline: float) -> set[int]:
    unknown, holding = set(behind), set()
    # A partition that doesn't answer in time counts as behind: it is asked again.
    while unknown and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is None:
            continue
        error, number = message.error(), int(message.partition() or 0)
        if error is not None and is_access_problem(error):
            return set(behind)  # without READ, markers and records look the same
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise kafka_failure(error, f"reading {topic}-{number}")
        if number in unknown:
            unknown.discard(number)
            if error is None and int(message.offset() or 0) < ends[number]:
                holding.add(number)
            consumer.incremental_unassign([TopicPartition(topic, number)])
    return holding | unknown
