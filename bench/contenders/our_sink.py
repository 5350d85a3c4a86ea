"""The sink, run as a user runs it and seen from outside: its positions in Postgres, its processes in /proc."""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import replace
from typing import Final

import psycopg
from psycopg.rows import TupleRow

from bench.contenders.meter import percentile
from bench.contenders.product import (
    OPEN_ROWS,
    Service,
    connection_to,
    count,
    cpu_s_of_all,
    fresh_schema,
    require_open_rows,
    running,
)
from bench.contenders.sink_pace import SerialCpu, Step, await_sessions_end, pace, stretch, writes, written
from bench.contenders.standing_rows import write_positions
from bench.contenders.wait_log import WaitLog, WaitLogWriter, prepare_topics
from bench.harness.row import Bench, Figures
from wait_registry.settings.tree import Settings

PROGRESS: Final = "select coalesce(sum(next_offset), 0)::bigint from sink_progress where topic = %s"
# The name of the connection that writes the wait stream's batches.
SESSION: Final = "waitreg sink"
START_S: Final = 200.0
SLOWEST_RECORDS_PER_S: Final = 20_000
# A warm stretch that is shorter says too little.
LEAST_S: Final = 3.0
SMALL_BATCH: Final = 100
LOOK_S: Final = 0.01
SETTLED_S: Final = 10.0


def measure_backlog(log: WaitLog, bench: Bench, *, outage: bool = False) -> Figures:
    """Have a sink read a whole log into empty tables; see `read_log`.

    After an `outage` it has been here before, and makes up for what was written meanwhile.
    """
    with fresh_schema(bench, log.topic, log.partitions) as settings:
        return read_log(bench, log, settings, start_over=outage)


def read_log(bench: Bench, log: WaitLog, settings: Settings, *, start_over: bool) -> dict[str, float]:
    """Have a sink read a whole log from its beginning, and return what that took.

    With `start_over` the tables say that a sink has been here and read nothing.

    `records_per_s`, `cpu_us_per_record` and `serial_cpu_us_per_record` (see `SerialCpu`) are those of the warm stretch
    in which waits and tombstones alternate, which lasted `warm_stretch_s` and had `warm_commits`. `written_share` is
    that of the whole run: rows inserted or updated in `wait` by the number of waits. `exact_s` counts from the start of
    the process to the last record.
    """
    with connection_to(settings) as connection:
        if start_over:
            write_positions(connection, settings, from_start=True)
        standing, before, began = count(connection, OPEN_ROWS), writes(connection, settings), time.monotonic()
        with running(bench, "sink", settings) as sink:
            steps = _follow(sink, connection, settings, log.records)
            peaks = sink.peak_mb()
            sink.stop()
        await_sessions_end(connection, SESSION)
        require_open_rows(connection, standing + log.left_open)
        after = writes(connection, settings)
    first, last = stretch(steps, *log.measured)
    commits, seconds = sum(first.records < step.records <= last.records for step in steps), last.at_s - first.at_s
    if not bench.quick and (commits < 2 or seconds < LEAST_S):
        raise ValueError(f"the warm stretch had {commits} commits in {seconds:.1f} s: give the log more records")
    exact_s = steps[-1].at_s - began
    return {
        **pace(first, last),
        "warm_stretch_s": seconds,
        "warm_commits": commits,
        "exact_s": exact_s,
        "overall_records_per_s": log.records / exact_s,
        **peaks,
        **written(before, after, log.waits),
    }


def measure_small_batches(log: WaitLog, bench: Bench) -> Figures:
    """Publish 100 records at a time to an idle sink and wait until their rows can be seen; then leave it alone.

    `visible_*_s` is from the first produce call to the look that sees the last row, `beyond_trigger_p95_s` the same
    without the trigger's interval; `idle_cpu_percent` is of one core, over a stretch with nothing to do.
    """
    uncounted, tries, idle_s = bench.size(1, 5), bench.size(2, 15, 20), bench.size(2, 30, 60)
    log = replace(log, topic=f"{log.topic}.{uuid.uuid4().hex[:8]}", waits=SMALL_BATCH, left_open_every=1)
    prepare_topics(bench, log)
    with fresh_schema(bench, log.topic) as settings, connection_to(settings) as connection:
        with running(bench, "sink", settings) as sink:
            sink.await_ready()
            writer = WaitLogWriter(bench.kafka)
            visible = [_publish(sink, connection, writer, log, number) for number in range(uncounted + tries)]
            time.sleep(0 if bench.quick else SETTLED_S)
            began, cpu_s = time.monotonic(), sink.cpu_s()
            time.sleep(idle_s)
            idle = (sink.cpu_s() - cpu_s) / (time.monotonic() - began)
            sink.stop()
    p50, p95 = (percentile(visible[uncounted:], share) for share in (0.5, 0.95))
    beyond = p95 - settings.sink.poll_interval_s
    return {"visible_p50_s": p50, "visible_p95_s": p95, "beyond_trigger_p95_s": beyond, "idle_cpu_percent": 100 * idle}


def _follow(sink: Service, connection: psycopg.Connection[TupleRow], settings: Settings, records: int) -> list[Step]:
    """Return every step that is seen until the positions have come to a number of records."""
    serial = SerialCpu(connection, SESSION)
    # It has no session yet.
    steps = [Step(time.monotonic(), 0, sink.cpu_s(), cpu_s_of_all(sink.driver()))]

    def look() -> bool:
        done = count(connection, PROGRESS, settings.wait.topic)
        if done > steps[-1].records:
            steps.append(Step(time.monotonic(), done, sink.cpu_s(), serial.used_s(sink.driver())))
        return done >= records

    sink.wait_for(look, f"to read {records} records", START_S + records / SLOWEST_RECORDS_PER_S)
    return steps


def _publish(
    sink: Service, connection: psycopg.Connection[TupleRow], writer: WaitLogWriter, log: WaitLog, number: int
) -> float:
    """Publish some waits at a random moment between two triggers; return after how long all can be seen, s."""
    time.sleep(random.Random(number).random())
    expected, began = (number + 1) * SMALL_BATCH, time.monotonic()
    writer.write(log, first=number * SMALL_BATCH)
    sink.wait_for(lambda: count(connection, OPEN_ROWS) >= expected, f"to show {expected} rows", 60, LOOK_S)
    return time.monotonic() - began
