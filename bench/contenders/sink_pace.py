"""How fast tables are kept by a sink or by a peer in its place, and what it had Postgres write."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import psycopg
from confluent_kafka import Consumer, TopicPartition
from psycopg.rows import TupleRow

from bench.contenders.meter import NS_PER_S, cpu_ns_of, memory_of
from bench.contenders.product import connection_to, count, fresh_schema, require_open_rows
from bench.contenders.wait_log import WaitLog
from bench.harness.process import BYTES_PER_MB
from bench.harness.row import Bench, Figures
from wait_registry.kafka.clients import consumer_config
from wait_registry.settings.root import Settings

WRITES: Final = """
select coalesce(sum(n_tup_ins + n_tup_upd), 0), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
from pg_stat_user_tables where schemaname = %s and relname = 'wait'
"""
SESSIONS: Final = "select count(*) from pg_stat_activity where application_name = %s"
POLL_S: Final = 0.1
ANSWER_S: Final = 10.0
START_S: Final = 120.0
SESSION_END_S: Final = 120.0
# How long a peer reads after its first commit, s, and from when on it counts as warm.
PEER_S: Final = 30.0
WARM_S: Final = 10.0


class Step(NamedTuple):
    """What was seen at a moment: the records that were done, and the CPU time used until then, s."""

    at_s: float
    records: int
    cpu_s: float


def stretch(steps: Sequence[Step], first: int, last: int) -> tuple[Step, Step]:
    """Return the first and the last step between two records; of a smoke with fewer steps, of all."""
    within = [step for step in steps if first <= step.records <= last]
    chosen = within if len(within) >= 2 else list(steps)
    if len(chosen) < 2:
        raise ValueError(f"saw {len(steps)} steps, expected two at least")
    return chosen[0], chosen[-1]


def pace(began: Step, ended: Step) -> dict[str, float]:
    """Return the figures of the work between two steps."""
    records, seconds = ended.records - began.records, ended.at_s - began.at_s
    return {"records_per_s": records / seconds, "cpu_us_per_record": (ended.cpu_s - began.cpu_s) / records * 1e6}


def writes(connection: psycopg.Connection[TupleRow], settings: Settings) -> tuple[int, int]:
    """Return the rows inserted or updated in `wait` so far, and the bytes that Postgres logged."""
    row = connection.execute(WRITES, (settings.postgres.schema_name,)).fetchone()
    assert row is not None  # sums without a group always have one
    return int(row[0]), int(row[1])


def written(before: tuple[int, int], after: tuple[int, int], waits: float) -> dict[str, float]:
    """Return what was written by the number of waits."""
    rows, wal_bytes = (now - then for now, then in zip(after, before, strict=True))
    return {"written_share": rows / waits, "wal_bytes_per_wait": wal_bytes / waits}


def await_sessions_end(connection: psycopg.Connection[TupleRow], application: str) -> None:
    """Wait until an application's sessions have ended: only then has Postgres counted all that they did."""
    deadline = time.monotonic() + SESSION_END_S
    while count(connection, SESSIONS, application):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the sessions of {application} didn't end in {SESSION_END_S:g} s")
        time.sleep(POLL_S)


class GroupWatch:
    """How far a consumer group is in the wait topic, by the offsets that it commits; this consumer never joins it."""

    def __init__(self, settings: Settings, group: str, pid: int) -> None:
        self._asked = [TopicPartition(settings.wait.topic, number) for number in range(settings.wait.partitions)]
        self._consumer = Consumer(consumer_config(settings.kafka, **{"group.id": group}))
        self._pid = pid
        self.steps: list[Step] = []
        self.rss_mb = 0.0

    def follow(self, records: int, require_running: Callable[[], None]) -> None:
        """Note every step until the group has committed all of a number of records, or for a while after the first."""
        self.steps = [self._step(0)]
        deadline = time.monotonic() + START_S
        while self.steps[-1].records < records and time.monotonic() < deadline:
            require_running()
            if (done := self.records()) > self.steps[-1].records:
                deadline = time.monotonic() + PEER_S if len(self.steps) == 1 else deadline
                self.steps.append(self._step(done))
            time.sleep(POLL_S)
        if len(self.steps) == 1:
            raise TimeoutError(f"nothing was committed in {START_S:g} s")
        self.rss_mb = memory_of(self._pid)[1] / BYTES_PER_MB

    def records(self) -> int:
        """Return how many records are committed over all partitions."""
        return sum(max(0, place.offset) for place in self._consumer.committed(self._asked, timeout=ANSWER_S))

    def _step(self, records: int) -> Step:
        return Step(time.monotonic(), records, cpu_ns_of(self._pid) / NS_PER_S)


# Runs a peer that reads the settings' wait topic into their tables, and returns its watch; its process is gone then.
Read = Callable[[Settings], GroupWatch]


def measure_peer(bench: Bench, log: WaitLog, application: str, read: Read) -> Figures:
    """Have a peer, whose sessions in Postgres have this name, read a wait log into empty tables for a while."""
    with fresh_schema(bench, log.topic, log.partitions) as settings, connection_to(settings) as connection:
        before = writes(connection, settings)
        watch = read(settings)
        await_sessions_end(connection, application)
        done, after = watch.records(), writes(connection, settings)
        if done >= log.records:
            require_open_rows(connection, log.left_open)
    steps, (first, last) = watch.steps, log.measured
    if done < last:
        late = [step for step in steps if step.at_s >= steps[1].at_s + WARM_S]
        steps, first, last = late if len(late) > 1 else steps, 0, done
    figures = {**pace(*stretch(steps, first, last)), **written(before, after, log.waits * done / log.records)}
    return {**figures, "records_done": done, "rss_mb": watch.rss_mb}
