"""The sink, run as a user runs it and seen from outside: its positions in Postgres, its processes in /proc."""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import replace
from itertools import pairwise
from typing import Final

import psycopg
from psycopg.rows import TupleRow

from bench.contenders.our_service import Service, running
from bench.contenders.our_settings import connection_to, fresh_schema
from bench.contenders.percentile import percentile
from bench.contenders.progress_steps import Step, pace, stretch
from bench.contenders.registry_rows import start_over
from bench.contenders.table_writes import (
    TableWrites,
    await_sessions_end,
    figures_of,
    require_open_rows,
    table_writes,
)
from bench.contenders.wait_log import WaitLog
from bench.contenders.wait_log_writer import WaitLogWriter, make_topics
from bench.harness.row import Bench
from wait_registry.settings.root import Settings

POLL_S: Final = 0.02
PROGRESS: Final = "select coalesce(sum(next_offset), 0)::bigint from sink_progress where topic = %s"
OPEN_ROWS: Final = "select count(*) from wait"
# The name of the connection that writes the wait stream's batches.
SESSION: Final = "waitreg sink wait"

START_S: Final = 200.0
SLOWEST_RECORDS_PER_S: Final = 20_000
# A warm stretch that is shorter says too little.
LEAST_S: Final = 3.0

SMALL_BATCH: Final = 100
LOOK_S: Final = 0.01
SETTLED_S: Final = 10.0


class TooShort(ValueError):
    """The sink's commits are so large or so fast that too little lies within the stretch that is to be measured."""


def measure_backlog(bench: Bench, log: WaitLog) -> dict[str, float]:
    """Have a sink read a whole log into an empty view; see `read_log`."""
    with fresh_schema(bench, log) as settings:
        return read_log(bench, log, settings)


def measure_outage(bench: Bench, log: WaitLog) -> dict[str, float]:
    """Have a sink that was away while a whole log was written make up for it; see `read_log`."""
    with fresh_schema(bench, log) as settings:
        with connection_to(settings) as connection:
            start_over(connection, settings)
        return read_log(bench, log, settings)


def read_log(bench: Bench, log: WaitLog, settings: Settings) -> dict[str, float]:
    """Have a sink read a whole log from its beginning, and return what that took.

    `records_per_s` and `cpu_us_per_record` are those of the warm stretch in which waits and tombstones alternate, and
    so is `warm_written_share`: rows inserted or updated in `wait` by the number of waits. That stretch lasted
    `warm_stretch_s` and had `warm_commits`: the sink gathers what waits before it commits. `written_share` is that of
    the whole run, its small first batches included; `wal_bytes_per_wait` is all that Postgres logged.
    `overall_records_per_s` and `exact_s` count from the start of the process to the last record. Memory is the highest
    of the whole run.

    Args:
        bench: of the turn.
        log: filled before.
        settings: with the schema to write into.

    Raises:
        WrongView: rows are missing or left over at the end.
        ProcessError: the sink ended or took too long.
        TooShort: the log has too few records to measure a warm stretch of it.
    """
    with connection_to(settings) as connection:
        standing, before = _count(connection, OPEN_ROWS), table_writes(connection, settings.postgres.schema_name)
        began = time.monotonic()
        with running(bench, "sink", settings) as sink:
            progress = _Progress(sink, connection, settings)
            progress.follow(log.records)
            peaks = sink.peak_mb()
            sink.stop()
        await_sessions_end(connection, SESSION)
        require_open_rows(connection, standing + log.left_open)
        after = table_writes(connection, settings.postgres.schema_name)
        progress.written[progress.steps[-1].records] = after
    paces = _paces(log, progress, began)
    if not bench.quick:
        _require_stretch(paces)
    return {**paces, **peaks, **figures_of(before, after, log.waits)}


def measure_small_batches(bench: Bench, log: WaitLog) -> dict[str, float]:
    """Publish 100 records at a time to an idle sink and wait until their rows can be seen; then leave it alone.

    `visible_*_s` is from the first produce call to the look that sees the last row, `beyond_trigger_*_s` the same
    without the trigger's interval; `idle_cpu_percent` is of one core, over a stretch with nothing to do.
    """
    uncounted, tries, idle_s = bench.size(1, 5), bench.size(2, 15, 20), bench.size(2, 30, 60)
    log = replace(log, topic=f"{log.topic}.{uuid.uuid4().hex[:8]}")  # with nothing in it, at a second turn too
    with fresh_schema(bench, log) as settings, connection_to(settings) as connection:
        make_topics(settings)
        with running(bench, "sink", settings) as sink:
            sink.await_ready()
            writer = WaitLogWriter(settings.kafka)
            visible = [_publish(sink, connection, writer, log, number) for number in range(uncounted + tries)]
            time.sleep(0 if bench.quick else SETTLED_S)
            idle = _idle_share(sink, idle_s)
            peaks = sink.peak_mb()
            sink.stop()
        trigger_s, counted = settings.sink.trigger_s, visible[uncounted:]
        p50, p95 = percentile(counted, 0.5), percentile(counted, 0.95)
        return {
            "visible_p50_s": p50,
            "visible_p95_s": p95,
            "beyond_trigger_p50_s": p50 - trigger_s,
            "beyond_trigger_p95_s": p95 - trigger_s,
            "idle_cpu_percent": 100 * idle,
            **{f"idle_{name}": value for name, value in peaks.items()},
        }


class _Progress:
    """Every step that a sink makes, and what Postgres had counted by then, by the number of records."""

    def __init__(self, sink: Service, connection: psycopg.Connection[TupleRow], settings: Settings) -> None:
        self._sink = sink
        self._connection = connection
        self._settings = settings
        self.steps = [Step(time.monotonic(), 0, sink.cpu_s())]
        self.written = {0: self._counted()}

    def follow(self, records: int) -> None:
        """Watch the positions until they have come to so many records; raises ProcessError when they don't."""
        self._sink.wait_for(
            lambda: self._look() >= records,
            f"to read {records} records",
            START_S + records / SLOWEST_RECORDS_PER_S,
            POLL_S,
        )

    def _look(self) -> int:
        latest = self.steps[-1].records
        if latest not in self.written:
            # A look after the step: a session's counts are published just after its commit.
            self.written[latest] = self._counted()
        records = _count(self._connection, PROGRESS, self._settings.wait.topic)
        if records > latest:
            self.steps.append(Step(time.monotonic(), records, self._sink.cpu_s()))
        return records

    def _counted(self) -> TableWrites:
        return table_writes(self._connection, self._settings.postgres.schema_name)


def _require_stretch(figures: dict[str, float]) -> None:
    commits, seconds = figures["warm_commits"], figures["warm_stretch_s"]
    if commits < 2 or seconds < LEAST_S:
        raise TooShort(
            f"the warm stretch had {commits:g} commits in {seconds:.1f} s, expected two in {LEAST_S:g} s at least: "
            f"give the log more records"
        )


def _paces(log: WaitLog, progress: _Progress, began: float) -> dict[str, float]:
    steps = progress.steps
    first, last = stretch(steps, *log.measured)
    within = pace(steps, first.records, last.records)
    written = figures_of(
        progress.written[first.records], progress.written[last.records], within.records * log.waits / log.records
    )
    exact_s = steps[-1].at_s - began
    return {
        "records_per_s": within.records_per_s,
        "cpu_us_per_record": within.cpu_us_per_record,
        "warm_written_share": written["written_share"],
        "warm_wal_bytes_per_wait": written["wal_bytes_per_wait"],
        "warm_stretch_s": within.seconds,
        "warm_commits": sum(first.records < step.records <= last.records for step in steps),
        "exact_s": exact_s,
        "overall_records_per_s": log.records / exact_s,
        "largest_batch_records": max(after.records - before.records for before, after in pairwise(steps)),
    }


def _publish(
    sink: Service, connection: psycopg.Connection[TupleRow], writer: WaitLogWriter, log: WaitLog, number: int
) -> float:
    """Publish some waits at a random moment between two triggers; return after how long all can be seen, s."""
    time.sleep(random.Random(number).random())
    expected = (number + 1) * SMALL_BATCH
    began = time.monotonic()
    writer.write(replace(log, waits=SMALL_BATCH, left_open_every=1), first=number * SMALL_BATCH)
    sink.wait_for(lambda: _count(connection, OPEN_ROWS) >= expected, f"to show {expected} rows", 60, LOOK_S)
    return time.monotonic() - began


def _idle_share(sink: Service, seconds: float) -> float:
    began, cpu_s = time.monotonic(), sink.cpu_s()
    time.sleep(seconds)
    return (sink.cpu_s() - cpu_s) / (time.monotonic() - began)


def _count(connection: psycopg.Connection[TupleRow], query: str, *parameters: object) -> int:
    row = connection.execute(query.encode(), parameters or None).fetchone()
    return 0 if row is None else int(row[0])
