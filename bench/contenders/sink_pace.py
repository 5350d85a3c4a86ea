"""How fast tables are kept by a sink or by a peer in its place, and what it had Postgres write."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import psutil
import psycopg
from psycopg.rows import TupleRow

from bench.contenders.product import count, cpu_s_of_all
from wait_registry.settings.tree import Settings

WRITES: Final = """
select coalesce(sum(n_tup_ins + n_tup_upd), 0), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
from pg_stat_user_tables where schemaname = %s and relname = 'wait'
"""
SESSIONS: Final = "select count(*) from pg_stat_activity where application_name = %s"
# At most one of them is the sink's that has these ports: another checkout's may work at the same time.
BACKENDS: Final = "select pid from pg_stat_activity where application_name = %s and client_port = any(%s)"
POLL_S: Final = 0.1
SESSION_END_S: Final = 120.0


class Step(NamedTuple):
    """What was seen at a moment: the records that were done, and the CPU time used until then, s.

    `serial_cpu_s` is the part of the work that can't be spread: see `SerialCpu`. None where it can't be known.
    """

    at_s: float
    records: int
    cpu_s: float
    serial_cpu_s: float | None = None


class SerialCpu:
    """The CPU time of a sink that more machines can't take over: that of its driver, and of its session in Postgres.

    Locally the driver does the work of Spark's tasks, too.
    """

    def __init__(self, connection: psycopg.Connection[TupleRow], application: str) -> None:
        self._connection = connection
        self._application = application
        self._backends_s: dict[int, float] = {}

    def used_s(self, driver: Sequence[psutil.Process]) -> float | None:
        """Return what was used so far, s; None while no backend was seen, as when Postgres runs in a container."""
        ports = [each.laddr.port for process in driver[:1] for each in process.net_connections("tcp")]
        for (pid,) in self._connection.execute(BACKENDS.encode(), (self._application, ports)):
            if psutil.pid_exists(pid):
                self._backends_s[pid] = cpu_s_of_all([psutil.Process(pid)])
        return cpu_s_of_all(driver) + sum(self._backends_s.values()) if self._backends_s else None


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
    figures = {"records_per_s": records / seconds, "cpu_us_per_record": (ended.cpu_s - began.cpu_s) / records * 1e6}
    if began.serial_cpu_s is not None and ended.serial_cpu_s is not None:
        figures["serial_cpu_us_per_record"] = (ended.serial_cpu_s - began.serial_cpu_s) / records * 1e6
    return figures


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
