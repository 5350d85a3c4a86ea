"""Row 6: what grows with partitions, with the registry and with the payload."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Final

from bench.contenders.our_sink import measure_backlog, read_log
from bench.contenders.our_sweeper import measure_due
from bench.contenders.product import connection_to, drop, install, settings_of
from bench.contenders.standing_rows import stand, tidy
from bench.contenders.wait_log import CUSTOMERS, INPUT_PARTITIONS, INPUT_TOPIC, WaitLog, fill
from bench.harness.row import Bench, Case, Contender, Figures, Line, Row
from wait_registry.cli.query_file import bind, load_query, query_names
from wait_registry.settings.root import Settings

SINK: Final = "sink"
REGISTRY: Final = "registry"
# Partitions of the wait topic, and bytes of a value.
SHAPES: Final = ((1, 200), (4, 200), (16, 200), (4, 2_000), (4, 20_000))
ROWS: Final = (10_000, 1_000_000, 10_000_000)
RECORDS_PER_BATCH: Final = 100_000
SWEEPS: Final = 5
RATE: Final = "records_per_s"
# Of a row that every registry of the benchmark has (see `standing_rows`).
STANDING_ROW: Final = 17
PARAMETERS: Final = {
    "id": f"00000000-0000-8000-8000-{STANDING_ROW:012x}",
    "key": f"customer-{STANDING_ROW * 7919 % CUSTOMERS}",
    "topic": INPUT_TOPIC,
    "partition": str(STANDING_ROW % INPUT_PARTITIONS),
    "offset": str(STANDING_ROW // INPUT_PARTITIONS),
    "instance": f"host-{STANDING_ROW % 16}",
}
# Their answer is about every row of `wait`, which they read once; an index answers the others.
COUNTING: Final = frozenset(
    {
        *("burst_timeline", "growth_per_day", "instance_in_flight", "oldest_waits", "stuck_now"),
        *("waiting_by_group", "waiting_by_instance", "waiting_by_partition", "waiting_by_topic"),
    }
)


def _sink_name(partitions: int, value_bytes: int) -> str:
    return f"{partitions} partition{'s' if partitions > 1 else ''}, {value_bytes:,} B"


def _rows_name(rows: int) -> str:
    return f"{rows:,} rows"


def _logs(bench: Bench) -> Mapping[str, WaitLog]:
    """Return what the sink reads, by the contender's name."""
    return {_sink_name(*shape): _log(bench, *shape) for shape in (SHAPES[-1:] if bench.quick else SHAPES)}


def _log(bench: Bench, partitions: int, value_bytes: int) -> WaitLog:
    waits = {200: bench.size(2_000, 750_000), 2_000: bench.size(1_000, 500_000), 20_000: bench.size(600, 30_000)}
    topic = f"bench.r6.p{partitions}.b{value_bytes}"
    return WaitLog(topic, waits[value_bytes], partitions=partitions, value_bytes=value_bytes)


def _fill_logs(bench: Bench) -> None:
    for log in _logs(bench).values():
        fill(log, bench)


def _registries(bench: Bench) -> Sequence[int]:
    return (500,) if bench.quick else ROWS if bench.first_of_full else ROWS[:2]


def _registry(bench: Bench, rows: int) -> tuple[WaitLog, Settings]:
    log = WaitLog(f"bench.r6.n{rows}", bench.size(2_000, 750_000))
    return log, settings_of(bench, log.topic, log.partitions, f"bench_r6_n{rows}")


def _prepare_registries(bench: Bench) -> None:
    for rows in _registries(bench):
        log, settings = _registry(bench, rows)
        fill(log, bench)
        drop(settings)
        install(bench, settings)
        stand(bench, settings, rows, dead_letters=True)


def _measure_queries(bench: Bench, settings: Settings) -> dict[str, float]:
    """Ask every query; return the median time of each, and the slowest of those that count and of the others, ms."""
    took_ms: dict[str, float] = {}
    with connection_to(settings) as connection:
        connection.read_only = True
        for name in query_names():
            query = load_query(name)
            known = {wanted: PARAMETERS[wanted] for wanted in query.parameters if wanted not in query.defaults}
            times = []
            for _ in range(bench.size(1, 3)):
                began = time.perf_counter()
                connection.execute(query.sql.encode(), bind(query, known)).fetchall()
                times.append((time.perf_counter() - began) * 1000)
            took_ms[name] = median(times)
    return {
        **{f"{name}_ms": value for name, value in took_ms.items()},
        "slowest_count_ms": max(value for name, value in took_ms.items() if name in COUNTING),
        "slowest_look_up_ms": max(value for name, value in took_ms.items() if name not in COUNTING),
    }


def _measure_registry(rows: int, bench: Bench) -> Figures:
    log, settings = _registry(bench, rows)
    queries = _measure_queries(bench, settings)
    sink = read_log(bench, log, settings, start_over=True)
    with connection_to(settings) as connection:
        tidy(connection)
    swept = measure_due(bench, settings, SWEEPS)
    return {**queries, **sink, **swept, "sink_ms": RECORDS_PER_BATCH / sink[RATE] * 1000}


def _cases(bench: Bench) -> Sequence[Case]:
    sinks = [Contender(name, partial(measure_backlog, log)) for name, log in _logs(bench).items()]
    registries = [Contender(_rows_name(rows), partial(_measure_registry, rows)) for rows in _registries(bench)]
    return [
        Case(SINK, sinks, prepare=_fill_logs),
        Case(REGISTRY, registries, prepare=_prepare_registries),
    ]


def _registry_lines(rows: int) -> list[Line]:
    name, fewest = _rows_name(rows), _rows_name(ROWS[0])
    figures = (("sink, 100,000 records", "sink_ms"), ("a sweep of 100 due rows", "sweep_ms"))
    queries = (("slowest look-up", "slowest_look_up_ms"), ("slowest count", "slowest_count_ms"))
    lines = [Line(f"{name}: {text}", (REGISTRY, name, key), "ms") for text, key in (*figures, *queries)]
    growth = [
        Line(f"{name} / {fewest}: {text}", (REGISTRY, name, key), to=(REGISTRY, fewest, key))
        for text, key in (*figures, queries[0])
    ]
    return growth if rows == ROWS[-1] else lines


LINES: Final = (
    *(Line(f"Sink, {_sink_name(*shape)}", (SINK, _sink_name(*shape), RATE), "records/s") for shape in SHAPES),
    *(line for rows in (ROWS[0], ROWS[-1]) for line in _registry_lines(rows)),
)


ROW: Final = Row(6, "Growth", _cases, LINES)
