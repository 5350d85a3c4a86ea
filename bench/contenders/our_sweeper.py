"""The sweeper, run as a user runs it and seen from outside: by the rows that it writes into the table `sweep`."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from statistics import median
from typing import Final, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from bench.contenders.our_service import Service, running
from bench.contenders.our_settings import connection_to, fresh_schema
from bench.contenders.percentile import percentile
from bench.contenders.registry_rows import caught_up, register_due, remove_due, tidy
from bench.contenders.wait_log import WaitLog
from bench.contenders.wait_log_writer import make_topics
from bench.harness.row import Bench, WrongResultError
from sweeper.due import find_due
from sweeper.snapshot import TableSnapshot
from wait_registry.settings.root import Settings

DUE: Final = 100
FIRST_SWEEP_S: Final = 120.0
LOOK_S: Final = 0.02
SWEEPS: Final = """
select id, duration_s, due, (counts ->> 'exported')::bigint, result, skipped::text
from sweep where wait_topic = %s and id > %s order by id
"""


class WrongSweep(WrongResultError):
    """A sweep did something else than it was to do: the figures would be worth nothing."""


class Swept(NamedTuple):
    """A row of the table `sweep`."""

    number: int
    duration_s: float
    due: int
    exported: int
    result: str
    skipped: str


class Sweeps:
    """What a running sweeper has written down, from now on."""

    def __init__(self, connection: psycopg.Connection[TupleRow], settings: Settings) -> None:
        self._connection = connection
        self._topic = settings.wait.topic
        self._last = 0
        self.new()

    def new(self) -> list[Swept]:
        """Return the sweeps since the last look; raises WrongSweep when one failed or left something out."""
        found = [Swept(*row) for row in self._connection.execute(SWEEPS.encode(), (self._topic, self._last))]
        for swept in found:
            self._last = swept.number
            if swept.result != "done":
                raise WrongSweep(f"a sweep of {swept.due} due rows ended as {swept.result}: {swept.skipped}")
        return found

    def await_export(self, sweeper: Service, rows: int, deadline_s: float) -> Swept:
        """Return the sweep that exported so many rows; sweeps without a due row are passed over."""
        found: list[Swept] = []

        def exported() -> bool:
            found.extend(swept for swept in self.new() if swept.due)
            return bool(found)

        sweeper.wait_for(exported, f"to export {rows} rows", deadline_s, LOOK_S)
        if found[0].exported != rows:
            raise WrongSweep(f"{found[0].exported} of {rows} due rows were exported")
        return found[0]


def measure_due(bench: Bench, log: WaitLog, settings: Settings, sweeps_counted: int = 10) -> dict[str, float]:
    """Let 100 registrations become due among the rows that stand, again and again, and return what a sweep takes.

    `sweep_*_ms` is the duration that the sweeper itself writes down, from the lock to the last partition's result;
    `nothing_due_sweep_ms` that of the sweeps between, `nothing_due_ms` the sweeper's question alone. `due_query_ms` and
    `view_read_ms` are the parts of a sweep that Postgres has, see `ask_for_due`.

    Args:
        bench: of the turn.
        log: names the wait topic and the size of the values.
        settings: with the schema in which rows stand.
        sweeps_counted: of 100 rows each.
    """
    due = replace(log, waits=DUE, left_open_every=1, expires_in_s=-3600.0)
    # The first sweeps start Spark's Python workers and have their code compiled.
    uncounted, times = bench.size(1, 3), bench.size(1, sweeps_counted)
    durations, idle = [], []
    with connection_to(settings) as connection, running(bench, "sweeper", settings) as sweeper:
        remove_due(settings)  # of a turn that was broken off
        caught_up(connection, settings)
        first = unused_index(settings)
        sweeper.await_ready()
        sweeps = Sweeps(connection, settings)
        for number in range(uncounted + times):
            register_due(settings, due, first=first + number * DUE)
            durations.append(sweeps.await_export(sweeper, DUE, FIRST_SWEEP_S).duration_s * 1000)
            remove_due(settings)
            idle += _sweeps_with_nothing_due(sweeper, sweeps)
        sweeper.stop()
    counted = durations[uncounted:]
    return {
        "sweep_ms": median(counted),
        "sweep_p90_ms": percentile(counted, 0.9),
        "nothing_due_sweep_ms": median(idle) * 1000,
        **ask_for_nothing(bench, settings),
        **ask_for_due(bench, settings, due, first + (uncounted + times) * DUE),
    }


def measure_export(bench: Bench, log: WaitLog) -> dict[str, float]:
    """Have a sweeper export a log's registrations, all due, in its first sweep, and return its pace."""
    due = replace(log, left_open_every=1, expires_in_s=-3600.0)
    with fresh_schema(bench, due) as settings, connection_to(settings) as connection:
        make_topics(settings)
        caught_up(connection, settings)
        register_due(settings, due, first=unused_index(settings))
        tidy(connection)
        with running(bench, "sweeper", settings) as sweeper:
            swept = Sweeps(connection, settings).await_export(sweeper, due.waits, FIRST_SWEEP_S + due.waits / 2_000)
            peaks = sweeper.peak_mb()
            remove_due(settings)
            sweeper.stop()
    return {"rows_per_s": swept.exported / swept.duration_s, "sweep_s": swept.duration_s, **peaks}


def ask_for_nothing(bench: Bench, settings: Settings) -> dict[str, float]:
    """Ask Postgres what is due as the sweeper does, when nothing is, and return how long the answer takes."""
    took_ms = []
    with connection_to(settings) as connection:
        for _ in range(bench.size(20, 200)):
            began = time.perf_counter()
            due = find_due(connection, settings, settings.wait.partitions)
            took_ms.append((time.perf_counter() - began) * 1000)
            if due.rows:
                raise WrongSweep(f"{due.rows} rows are due, expected none")
    return {"nothing_due_ms": median(took_ms), "nothing_due_p99_ms": percentile(took_ms, 0.99)}


def ask_for_due(bench: Bench, settings: Settings, due: WaitLog, first: int) -> dict[str, float]:
    """Ask Postgres for 100 due rows by the sweeper's own functions, while no sweeper runs.

    `due_query_ms` is its question which partitions have any, `view_read_ms` that of all partitions' rows, one partition
    after the other: a snapshot each, with a connection of its own.

    Args:
        bench: of the turn.
        settings: with the schema in which rows stand.
        due: the registrations; their rows are removed again.
        first: index of the first of them.
    """
    register_due(settings, due, first=first)
    asked_ms, read_ms = [], []
    with connection_to(settings) as connection:
        for _ in range(bench.size(2, 20)):
            began = time.perf_counter()
            found = find_due(connection, settings, settings.wait.partitions)
            asked = time.perf_counter()
            rows = sum(_read_rows(settings, partition) for partition in found.partitions)
            asked_ms.append((asked - began) * 1000)
            read_ms.append((time.perf_counter() - asked) * 1000)
            if rows != due.waits:
                raise WrongSweep(f"{rows} due rows were read, expected {due.waits}")
    remove_due(settings)
    return {"due_query_ms": median(asked_ms), "view_read_ms": median(read_ms)}


def _read_rows(settings: Settings, partition: int) -> int:
    with closing(TableSnapshot(settings, partition)) as tables:
        rows, _ = tables.rows(tables.next_keys(settings.sweeper.chunk_rows, settings.sweeper.chunk_bytes))
        return len(rows)


def _sweeps_with_nothing_due(sweeper: Service, sweeps: Sweeps) -> list[float]:
    """Wait for a sweep that saw the rows gone; return the durations of those that did, s."""
    found: list[Swept] = []

    def seen() -> bool:
        found.extend(swept for swept in sweeps.new() if not swept.due)
        return bool(found)

    sweeper.wait_for(seen, "to sweep with nothing due", FIRST_SWEEP_S, LOOK_S)
    return [swept.duration_s for swept in found]


def unused_index(settings: Settings) -> int:
    """Return an index that no registration of this topic had before: one above the number of its records."""
    with connection_to(settings) as connection:
        row = connection.execute("select sum(next_offset)::bigint from sink_progress").fetchone()
    return 0 if row is None else int(row[0])
