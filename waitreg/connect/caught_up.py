"""Wait until the sinks have read the log: before that a source would export what was settled long ago."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, NamedTuple

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.errors import is_unknown_topic
from wait_registry.kafka.log_reader import first_records
from wait_registry.kafka.positions import end_offsets
from wait_registry.kafka.requests import persistently
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from waitreg.connect.lag import read_group_lag
from waitreg.connect.our_services import OurServices
from waitreg.connect.roles import keeps_tables, sink_group, sink_topics
from waitreg.connect.state import ConnectorState

POLL_S: Final = 0.5
REPORT_EVERY_S: Final = 10.0
# How often a worker commits the offsets of sinks by default (offset.flush.interval.ms).
COMMIT_S: Final = 60.0
# How long a sink may make no progress beyond the time between two of its commits.
PATIENCE_S: Final = 60.0

Offsets = Mapping[int, int]
Report = Callable[[str, str], None]


class SinksBehind(TransientError):
    """The sinks don't reach what was the log's end: fix them, then check the source again."""


class TableSink(NamedTuple):
    """A sink that keeps the tables, and what it reads; ``name`` is for people."""

    name: str
    group: str
    topics: tuple[str, ...]


def table_sinks(states: Iterable[ConnectorState], settings: Settings) -> list[TableSink]:
    """Return the sinks that keep the tables; if none reads the wait topic, also the one of sink.connect_group."""
    found = [
        TableSink(state.name, sink_group(state.name, state.config), tuple(sink_topics(state.config)))
        for state in states
        if keeps_tables(state.config)
    ]
    if any(settings.wait.topic in sink.topics for sink in found):
        return found
    group = settings.sink.connect_group
    return [*found, TableSink(f"the sink of group {group}", group, (settings.wait.topic,))]


def await_sinks(
    states: Iterable[ConnectorState],
    settings: Settings,
    ours: OurServices,
    report: Report,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return once the sinks, Connect's or ours by sink.kind, have read what the log held when the wait began.

    The outbox itself waits until the tables of our sink are complete up to a row's expiry. A sweeper's tombstone comes
    later than that, by as much as the sweeper was late.

    Args:
        states: all connectors that exist.
        settings: cluster and Postgres.
        ours: where our sink is; if it has recorded no position, or Postgres can't be asked, there is no wait for it.
        report: gets a sink and how far it is, at intervals.
        monotonic, sleep: s of a clock that never steps, and what lets time pass.

    Raises:
        SinksBehind: one makes no progress.
        TransientError: the cluster doesn't answer.
        ConfigurationError: a topic is missing, or we have no permission to see a group (DESCRIBE) or a topic (READ).
    """
    client = admin(settings.kafka)
    if settings.sink.kind is not SinkKind.CONNECT:
        # Records of an open transaction too: a sweeper that was killed may have left one that will be committed.
        ends = end_offsets(client, settings.wait.topic, list(ours.sink_positions()), "read_uncommitted")
        place, left = ("waitreg sink", "`waitreg query sink_freshness`"), partial(_left_of, ends, ours)
        _await_none_left(place, left, PATIENCE_S + settings.sink.idle_progress_s, report, monotonic, sleep)
        return
    for sink in table_sinks(states, settings):
        # The coordinator of a group that is new to the broker may not be elected yet.
        count = partial(persistently, client, partial(_count_left, client, settings, sink.group, _ends(client, sink)))
        place = sink.name, f"group {sink.group}"
        _await_none_left(place, count, PATIENCE_S + COMMIT_S, report, monotonic, sleep)


def _left_of(ends: Offsets, ours: OurServices) -> int:
    # If Postgres has become unavailable, the sink makes no progress.
    reached = ours.sink_positions()
    return sum(max(0, end - reached.get(number, 0)) for number, end in ends.items())


def _await_none_left(
    place: tuple[str, str],
    count_left: Callable[[], int],
    patience_s: float,
    report: Report,
    monotonic: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    sink, see = place
    least: int | None = None
    since = reported_at = monotonic()
    while count := count_left():
        now = monotonic()
        if least is None or count < least:
            least, since = count, now
        if now - since > patience_s:
            raise SinksBehind(
                f"{sink} is {count} offsets behind ({see}) and hasn't moved for {now - since:.0f} s. Create no "
                "source before it has read the log, or settled registrations would be exported: fix the sink, then "
                "run this again"
            )
        if now >= reported_at:
            report(sink, f"{count} offsets to what was the log's end")
            reported_at = now + REPORT_EVERY_S
        sleep(POLL_S)


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
        left = _with_records(settings, topic, behind, ends) if behind else set()
        count += sum(ends[number] - behind[number] for number in left)
    return count


def _with_records(settings: Settings, topic: str, behind: Offsets, ends: Offsets) -> set[int]:
    """Return the partitions with a record left: a sink doesn't commit the marker of a transaction after its last."""
    found = first_records(settings.kafka, f"waitreg.connect.{settings.wait.topic}", topic, behind)
    holding = {number for number, record in found.items() if record is not None and record.offset() < ends[number]}
    # A partition that doesn't answer in time counts as behind: it is asked again.
    return holding | (behind.keys() - found.keys())
