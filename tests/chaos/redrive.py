"""The scenario `redrive`: dead letters are redriven at full rate while all that this needs is killed, again and again.

Then each delivery is in the redelivery topic once, has one mark that says where, the counts add up, and the tables are
what the topics say. Under read_committed, as processors read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.chaos.service import Service
from tests.chaos.stage import Stage
from tests.integration.redrive.scenario import HEADERS, Scenario
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.positions import end_offsets
from wait_registry.records.lineage import split_lineage
from wait_registry.records.operation import Mark, Requested
from waitreg.local.environment import as_environment

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
# By the offset of a record in the input topic.
Sent = dict[int, tuple[str, int, int]]


class _Redrive:
    """One executor after the other of one job, and what is killed next."""

    def __init__(
        self, stage: Stage, at: Scenario, sink: Service, records: int, rate_per_s: float, say: Callable[[str], object]
    ) -> None:
        self.kills: list[str] = []
        self._say = say
        self._stage = stage
        self._at = at
        self._sink = sink
        self._records = records
        self._rate_per_s = rate_per_s
        self._executors: list[Service] = []

    def run(self) -> None:
        """Run the job to its end; AssertionError if an executor ends otherwise."""
        group = f"group={self._at.group}"
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
        target = describe_topic(self._at.admin, self._at.target)
        return sum(end_offsets(self._at.admin, target.topic, range(target.partitions), "read_uncommitted").values())

    def _start(self, *arguments: str) -> None:
        name = f"executor-{len(self._executors) + 1}"
        variables = as_environment(self._at.settings)
        executor = Service(
            name, ["dlq", "redrive", *arguments, "--reason", "fixed", "--send"], self._sink.directory, variables
        )
        self._executors.append(executor)
        executor.start()

    def _kill(self, victim: str) -> None:
        if victim == "executor":
            self._executors[-1].kill()
            self._start("--resume", next(one.job for one in self._at.events() if isinstance(one, Requested)))
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
        at = Scenario(place.settings, place.topics, place.database)
        letters = at.dead_letters(records)
        say(f"{records} dead letters are written")
        sink = stage.service(place, "sink-1")
        company.callback(sink.kill)
        sink.start()
        wait_until(lambda: at.rows("select count(*) from dead_letter") == [(records,)], READY_S, "the dead letters")
        say("the tables have all of them")
        redrive = _Redrive(stage, at, sink, records, rate_per_s, say)
        company.callback(redrive.end)
        began = time.monotonic()
        redrive.run()
        redriven = time.monotonic()
        shown = "select count(*) from operation where state = 'finished'"
        wait_until(lambda: at.rows(shown) == [(1,)], EXACT_S, "the end of the job in the tables")
        exact = time.monotonic()
        lines = [
            f"{records} redriven in {redriven - began:.0f} s ({records / (redriven - began):.0f}/s) with kills of "
            f"{', '.join(redrive.kills)}; tables exact after {exact - redriven:.0f} s"
        ]
        wrong = [] if redrive.kills == list(KILLED) else [f"killed only {', '.join(redrive.kills) or 'nothing'}"]
        return lines, [*wrong, *_wrong(at, letters)]


def _wrong(at: Scenario, letters: Sequence[Outgoing]) -> Iterator[str]:
    """Yield what isn't as it must be."""
    sent: Sent = {}
    for record in at.sent():
        headers, lineage, _ = split_lineage(record.headers)
        assert lineage is not None and lineage.original_offset is not None
        offset, letter = lineage.original_offset, letters[lineage.original_offset]
        if offset in sent:
            yield f"sent twice: offset {offset} to {sent[offset]} and {record.place}"
        if (record.value, record.key, headers) != (letter.value, letter.key, HEADERS):
            yield f"changed: offset {offset} at {record.place}"
        sent[offset] = record.place
    if sorted(sent) != list(range(len(letters))):
        yield f"{len(sent)} of {len(letters)} deliveries are in the redelivery topic"
    marks = [event for event in at.events() if isinstance(event, Mark)]
    if len(marks) != len(letters):
        yield f"{len(marks)} marks, expected {len(letters)}"
    marked: Sent = {mark.record.offset: tuple(mark.target) for mark in marks if mark.record and mark.target}
    if marked != sent:
        yield f"{len(dict(marked.items() ^ sent.items()))} marks don't say where the record is"
    rows = at.rows("select original_offset, target_topic, target_partition, target_offset from dead_letter_mark")
    if len(rows) != len(letters) or {offset: tuple(where) for offset, *where in rows} != marked:
        yield f"the tables have {len(rows)} marks that aren't those of the topic"
    for query, shown in (
        ("select state, counts from operation", ("finished", {"redriven": len(letters)})),
        ("select state, count(*) from dead_letter group by state", ("redriven", len(letters))),
    ):
        if (found := at.rows(query)) != [shown]:
            yield f"{query}: {found}"
