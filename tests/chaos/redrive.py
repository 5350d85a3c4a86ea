"""The scenario `redrive`: dead letters are redriven at full rate while all that this needs is killed, again and again.

Then each delivery is in the redelivery topic once, has one mark that says where, the counts add up, and the tables are
what the topics say. Under read_committed, as processors read.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.chaos.service import Service
from tests.chaos.stage import Place, Stage
from tests.support.kafka_io import Outgoing, read_all
from tests.support.waiting import wait_until
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import cluster_id, describe_topic
from wait_registry.kafka.positions import end_offsets
from wait_registry.local.environment import as_environment
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.headers import Headers
from wait_registry.records.lineage import Lineage, split_lineage
from wait_registry.records.operation import Mark, Requested, decode_event
from wait_registry.records.topics import redelivery_topic
from wait_registry.records.wait_id import wait_id

RECORDS: Final = 100_000
# As fast as one executor can.
RATE_PER_S: Final = 10_000.0
KILLED: Final = ("executor", "broker", "sink", "postgres") * 2
INPUT_PARTITIONS: Final = 6
# On a busy machine, the sink needs minutes until it reads.
READY_S, EXACT_S, POLL_S = 600.0, 600.0, 0.1
_SETTINGS: Final[Mapping[str, Any]] = {
    "processor.expiry_policy": "redeliver",
    "redrive.max_rate": RATE_PER_S,
    "sink.restart_backoff_max_s": 2,
    "wait.partitions": 4,
}
_HEADERS: Final[Headers] = (("tenant", b"blue"), ("raw", b"\xff\0"))
# By the offset of a record in the input topic.
Sent = dict[int, tuple[str, int, int]]


class _Redrive:
    """One executor after the other of one job, and what is killed next."""

    def __init__(
        self, stage: Stage, place: Place, sink: Service, records: int, rate_per_s: float, say: Callable[[str], object]
    ) -> None:
        self.kills: list[str] = []
        self._say = say
        self._stage = stage
        self._place = place
        self._sink = sink
        self._records = records
        self._rate_per_s = rate_per_s
        self._executors: list[Service] = []
        self._client = admin(place.settings.kafka)

    def run(self) -> None:
        """Run the job to its end; AssertionError if an executor ends otherwise."""
        group = f"group={self._place.settings.processor.group}"
        self._start(group, "--without-members", "--rate", str(self._rate_per_s))
        for number, victim in enumerate(KILLED, 1):
            enough = number * self._records // (len(KILLED) + 1)
            wait_until(partial(self._has_come_to, enough), READY_S, f"{enough} records", POLL_S)
            if not self._executors[-1].running:
                break
            self._kill(victim)
        wait_until(lambda: not self._executors[-1].running, READY_S, "the end of the executor", POLL_S)
        ended = self._executors[-1].notice_end()
        assert ended is not None and ended.status == 0, f"{ended}: see {self._executors[-1].log}"

    def end(self) -> None:
        """Kill the executor that runs, if one does."""
        self._executors[-1].kill()

    def _has_come_to(self, records: int) -> bool:
        """Return whether so much is written, or the executor has ended."""
        return not self._executors[-1].running or self._written() > records

    def _written(self) -> int:
        """Return how far the redelivery topic has grown; with what was aborted, and the markers."""
        target = describe_topic(self._client, _target(self._place))
        return sum(end_offsets(self._client, target.topic, range(target.partitions), "read_uncommitted").values())

    def _start(self, *arguments: str) -> None:
        name = f"executor-{len(self._executors) + 1}"
        variables = as_environment(self._place.settings)
        executor = Service(name, ["dlq", "redrive", *arguments, "--send"], self._place.directory, variables)
        self._executors.append(executor)
        executor.start()

    def _kill(self, victim: str) -> None:
        if victim == "executor":
            self._executors[-1].kill()
            self._start("--resume", _job(self._place))
        elif victim == "sink":
            self._sink.kill()
            self._sink.start()
        else:
            server = self._stage.stack.broker if victim == "broker" else self._stage.stack.postgres
            server.kill()
            server.launch()
            server.wait_ready(READY_S)
        self.kills.append(victim)
        self._say(f"{victim} was killed after {self._written()} records")


def play_redrive(
    stage: Stage, records: int, rate_per_s: float, directory: Path, say: Callable[[str], object] = print
) -> tuple[list[str], list[str]]:
    """Redrive dead letters under kills; return what was measured, and what is wrong."""
    with stage.place(directory, _SETTINGS, INPUT_PARTITIONS) as place, ExitStack() as company:
        _write_dead_letters(place, records)
        say(f"{records} dead letters are written")
        sink = stage.service(place, "sink-1")
        company.callback(sink.kill)
        sink.start()
        wait_until(partial(_shows, place, "select count(*) from dead_letter", records), READY_S, "the dead letters")
        say("the tables have all of them")
        redrive = _Redrive(stage, place, sink, records, rate_per_s, say)
        company.callback(redrive.end)
        began = time.monotonic()
        redrive.run()
        redriven = time.monotonic()
        shown = "select count(*) from operation where state = 'finished'"
        wait_until(partial(_shows, place, shown, 1), EXACT_S, "the end of the job in the tables")
        exact = time.monotonic()
        lines = [
            f"{records} redriven in {redriven - began:.0f} s ({records / (redriven - began):.0f}/s) with kills of "
            f"{', '.join(redrive.kills)}; tables exact after {exact - redriven:.0f} s"
        ]
        wrong = [] if redrive.kills == list(KILLED) else [f"killed only {', '.join(redrive.kills) or 'nothing'}"]
        return lines, [*wrong, *_wrong(place, records)]


def _write_dead_letters(place: Place, records: int) -> None:
    settings, now_ms = place.settings, time.time_ns() // 1_000_000
    cluster, group = cluster_id(admin(settings.kafka)), settings.processor.group
    failure = Failure(Reason.FAILED, "builtins.ValueError", "refused", "trace", now_ms)

    def made(offset: int) -> Outgoing:
        first = wait_id(cluster, place.input, 0, offset, group, now_ms)
        lineage = Lineage(place.input, 0, offset, now_ms, "create", first, 1, offset, group, "host-1", 1)
        return Outgoing(_value(offset), b"key-%d" % offset, dead_letter_headers(_HEADERS, lineage, failure))

    place.topics.produce(settings.dead_letter.topic, [made(offset) for offset in range(records)])


def _value(offset: int) -> bytes:
    return b"order %d" % offset


def _wrong(place: Place, records: int) -> Iterator[str]:
    """Yield what isn't as it must be."""
    sent: Sent = {}
    for record in place.topics.read(_target(place)):
        headers, lineage, _ = split_lineage(record.headers)
        assert lineage is not None and lineage.original_offset is not None
        if lineage.original_offset in sent:
            yield f"sent twice: offset {lineage.original_offset} to {sent[lineage.original_offset]} and {record.place}"
        if (record.value, record.key) != (
            _value(lineage.original_offset),
            b"key-%d" % lineage.original_offset,
        ) or headers != _HEADERS:
            yield f"changed: offset {lineage.original_offset} at {record.place}"
        sent[lineage.original_offset] = record.place
    if sorted(sent) != list(range(records)):
        yield f"{len(sent)} of {records} deliveries are in the redelivery topic"
    events = [decode_event(record.value) for record in place.topics.read(place.settings.operations.topic)]
    marks = [event for event in events if isinstance(event, Mark)]
    if len(marks) != records:
        yield f"{len(marks)} marks, expected {records}"
    marked: Sent = {mark.record.offset: tuple(mark.target) for mark in marks if mark.record and mark.target}
    if marked != sent:
        yield f"{len(dict(marked.items() ^ sent.items()))} marks don't say where the record is"
    yield from _wrong_tables(place, records, marked)


def _wrong_tables(place: Place, records: int, marked: Sent) -> Iterator[str]:
    rows = _rows(place, "select original_offset, target_topic, target_partition, target_offset from dead_letter_mark")
    if len(rows) != records or {offset: tuple(at) for offset, *at in rows} != marked:
        yield f"the tables have {len(rows)} marks that aren't those of the topic"
    found = _rows(place, "select state, counts from operation")
    if found != [("finished", {"redriven": records})]:
        yield f"the job is shown as {found}"
    states = Counter(dict(_rows(place, "select state, count(*) from dead_letter group by state")))
    if states != {"redriven": records}:
        yield f"dead letters by state: {dict(states)}"


def _target(place: Place) -> str:
    return redelivery_topic(place.input, place.settings.processor.group)


def _job(place: Place) -> str:
    values = [record.value for record in read_all(place.topics.bootstrap, place.settings.operations.topic)]
    return next(event.job for event in map(decode_event, values) if isinstance(event, Requested))


def _rows(place: Place, query: str) -> list[tuple[Any, ...]]:
    return place.database.rows(place.settings, query)


def _shows(place: Place, query: str, count: int) -> bool:
    return _rows(place, query) == [(count,)]
