"""The sweeper, run as a user runs it and seen from outside: by the rows that it writes into the table `sweep`."""

from __future__ import annotations

import time
from statistics import median
from typing import Final, NamedTuple

import psycopg
from psycopg.rows import TupleRow

from bench.contenders.product import Service, connection_to, fresh_schema, running
from bench.contenders.standing_rows import register_due, remove_due, tidy, write_positions
from bench.contenders.wait_log import WaitLog, WaitLogWriter, prepare_topics
from bench.harness.row import HERE, Bench, Figures
from sweeper.due import find_due
from wait_registry.settings.tree import Settings

ROWS: Final = 100
FIRST_SWEEP_S: Final = 120.0
# Older checkouts have a column `exported`.
SWEEPS: Final = """
select
    id, duration_s, due, coalesce(to_jsonb(s) -> 'counts' ->> 'exported', to_jsonb(s) ->> 'exported')::bigint,
    result, skipped::text
from sweep as s where wait_topic = %s and id > %s order by id
"""
# Something for the due rows' offsets to be behind.
BEHIND: Final = 100


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

    def __init__(self, sweeper: Service, connection: psycopg.Connection[TupleRow], settings: Settings) -> None:
        self._sweeper = sweeper
        self._connection = connection
        self._topic = settings.wait.topic
        self._last = 0
        self._new()

    def wait_for(self, rows: int, deadline_s: float) -> float:
        """Wait for the first sweep with due rows, or with none; return its duration, s.

        Raises RuntimeError unless it exported this number of rows.
        """
        found: list[Swept] = []

        def seen() -> bool:
            found.extend(swept for swept in self._new() if bool(swept.due) == bool(rows))
            return bool(found)

        self._sweeper.wait_for(seen, f"for a sweep of {rows} rows", deadline_s)
        if found[0].exported != rows:
            raise RuntimeError(f"{found[0].exported} of {rows} due rows were exported")
        return found[0].duration_s

    def _new(self) -> list[Swept]:
        found = [Swept(*row) for row in self._connection.execute(SWEEPS.encode(), (self._topic, self._last))]
        for swept in found:
            self._last = swept.number
            if swept.result != "done":
                raise RuntimeError(f"a sweep of {swept.due} due rows ended as {swept.result}: {swept.skipped}")
        return found


def prepare_log(bench: Bench, log: WaitLog) -> None:
    """Make the wait topic of a sweeper."""
    prepare_topics(bench, log)
    WaitLogWriter(bench.kafka).write(WaitLog(log.topic, BEHIND, partitions=log.partitions))


def measure_due(bench: Bench, settings: Settings) -> dict[str, float]:
    """Let 100 registrations become due among the rows that stand, again and again, and return what a sweep takes.

    `sweep_ms` is the duration that the sweeper itself writes down, from the lock to the last partition's result;
    `nothing_due_sweep_ms` that of the sweeps between, `nothing_due_ms` that of the sweeper's question to Postgres.
    """
    # The first sweeps start Spark's Python workers and have their code compiled.
    uncounted, times = bench.size(1, 3), bench.size(1, 10)
    durations, idle = [], []
    first = time.time_ns() // 1_000_000_000 * 1_000
    with connection_to(settings) as connection, running(bench, "sweeper", settings) as sweeper:
        remove_due(settings)  # of a turn that was ended
        write_positions(connection, settings)
        sweeper.await_ready()
        sweeps = Sweeps(sweeper, connection, settings)
        for number in range(first, first + (uncounted + times) * ROWS, ROWS):
            register_due(settings, range(number, number + ROWS))
            durations.append(sweeps.wait_for(ROWS, FIRST_SWEEP_S) * 1000)
            remove_due(settings)
            idle.append(sweeps.wait_for(0, FIRST_SWEEP_S) * 1000)
        sweeper.stop()
    swept = {"sweep_ms": median(durations[uncounted:]), "nothing_due_sweep_ms": median(idle)}
    return {**swept, **({"nothing_due_ms": ask_for_nothing(bench, settings)} if bench.product == HERE else {})}


def measure_export(log: WaitLog, bench: Bench) -> Figures:
    """Have a sweeper export registrations that are all due in its first sweep, and return its pace."""
    prepare_log(bench, log)
    with fresh_schema(bench, log.topic) as settings, connection_to(settings) as connection:
        register_due(settings, range(log.waits))
        tidy(connection)
        with running(bench, "sweeper", settings) as sweeper:
            sweep_s = Sweeps(sweeper, connection, settings).wait_for(log.waits, FIRST_SWEEP_S + log.waits / 2_000)
            remove_due(settings)
            sweeper.stop()
    return {"rows_per_s": log.waits / sweep_s, "sweep_s": sweep_s}


def ask_for_nothing(bench: Bench, settings: Settings) -> float:
    """Ask Postgres what is due by the sweeper's own function, when nothing is; return how long the answer takes, ms."""
    took_ms = []
    with connection_to(settings) as connection:
        for _ in range(bench.size(20, 200)):
            began = time.perf_counter()
            due = find_due(connection, settings, settings.wait.partitions)
            took_ms.append((time.perf_counter() - began) * 1000)
            if due.rows:
                raise RuntimeError(f"{due.rows} rows are due, expected none")
    return median(took_ms)
