"""What is measured of whoever keeps the view in our sink's place, whatever it is: pace, rows written, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from bench.contenders.group_progress import warm_pace
from bench.contenders.our_settings import connection_to, fresh_schema
from bench.contenders.process_usage import NS_PER_S, cpu_ns_of, memory_of
from bench.contenders.progress_steps import Step
from bench.contenders.table_writes import await_sessions_end, figures_of, require_open_rows, table_writes
from bench.contenders.wait_log import WaitLog
from bench.harness.process import BYTES_PER_MB
from bench.harness.row import Bench, Figures
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.root import Settings

LIMIT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """A wait topic to be read.

    Attributes:
        topic: filled before.
        records: that stand in it, waits and tombstones.
        waits: how many of the records are waits; half of them when None.
        left_open: how many rows must be left when it got to the end; not looked at when None.
        stretch: from which record to which the pace is measured; see `group_progress.warm_pace`.
        limit_s: when the reading is ended after its first commit, s.
    """

    topic: str
    records: int
    waits: int | None = None
    left_open: int | None = None
    stretch: tuple[int, int] | None = None
    limit_s: float = LIMIT_S


@dataclass(frozen=True, slots=True)
class Reading:
    """What a peer did.

    Attributes:
        steps: that were seen while it read.
        done: how many records it had committed when it had been ended.
        memory: of its process, see `memory_mb_of`.
    """

    steps: Sequence[Step]
    done: int
    memory: Mapping[str, float]


# Runs a peer that reads a topic of so many partitions into the settings' tables; its process is gone afterwards.
Read: TypeAlias = Callable[[Settings, int], Reading]


def measured(bench: Bench, backlog: Backlog, application: str, read: Read) -> Figures:
    """Have a peer read a topic into an empty view, to the end or for a while.

    Args:
        bench: of the turn.
        backlog: what is read.
        application: the name of the peer's sessions in Postgres.
        read: runs the peer.

    Returns:
        `records_per_s` and `cpu_us_per_record` of the peer's process once warm, `records_done`, what was written to
        Postgres (see `table_writes.figures_of`), and the memory.

    Raises:
        WrongView: rows are missing or left over at the end.
        Exception: whatever `read` raises.
    """
    kafka = KafkaSettings(bootstrap_servers=bench.kafka)
    partitions = describe_topic(admin(kafka), backlog.topic).partitions
    waits = backlog.records // 2 if backlog.waits is None else backlog.waits
    log = WaitLog(backlog.topic, waits, partitions=partitions)
    with fresh_schema(bench, log) as settings, connection_to(settings) as connection:
        before = table_writes(connection, settings.postgres.schema_name)
        reading = read(settings, partitions)
        await_sessions_end(connection, application)
        after = table_writes(connection, settings.postgres.schema_name)
        if backlog.left_open is not None and reading.done >= backlog.records:
            require_open_rows(connection, backlog.left_open)
    pace = warm_pace(reading.steps, backlog.records, backlog.stretch)
    return {
        "records_per_s": pace.records_per_s,
        "cpu_us_per_record": pace.cpu_us_per_record,
        "records_done": reading.done,
        **figures_of(before, after, waits * reading.done / backlog.records),
        **reading.memory,
    }


def cpu_s_of(pid: int) -> float:
    """Return the CPU time of a process so far, user and system, all threads, s."""
    return cpu_ns_of(pid) / NS_PER_S


def memory_mb_of(pid: int) -> dict[str, float]:
    """Return what a process holds in memory, MB of 10^6 bytes: `rss_mb` at its highest and `rss_now_mb`."""
    now, peak = memory_of(pid)
    return {"rss_mb": peak / BYTES_PER_MB, "rss_now_mb": now / BYTES_PER_MB}
