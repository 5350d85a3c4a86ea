"""Row 6: what grows with partitions, with the registry and with the payload."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Final

from bench.contenders import load
from bench.contenders.flows import REGISTRY as REGISTRY_FLOW
from bench.contenders.flows import Window, contender
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
PROCESSOR_PAYLOAD: Final = "payload, processor"
COUNTS: Final = (1, 4, 16)
VALUE_BYTES: Final = (200, 2_000, 20_000)
PARTITIONS: Final = 4
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


def _sink_name(partitions: int = PARTITIONS, value_bytes: int = VALUE_BYTES[0]) -> str:
    return f"{partitions} partition{'s' if partitions > 1 else ''}, {_bytes_name(value_bytes)}"


def _rows_name(rows: int) -> str:
    return f"{rows:,} rows"


def _bytes_name(value_bytes: int) -> str:
    return f"{value_bytes:,} B"


def _logs(bench: Bench) -> Mapping[str, WaitLog]:
    """Return what the sink reads, by the contender's name: the partitions vary, or the payload, never both."""
    shapes = [(count, VALUE_BYTES[0]) for count in COUNTS] + [(PARTITIONS, size) for size in VALUE_BYTES[1:]]
    return {_sink_name(*shape): _log(bench, *shape) for shape in (shapes[-1:] if bench.quick else shapes)}


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


def _input(bench: Bench, value_bytes: int) -> tuple[str, int]:
    """Return the input topic of a payload and how many records it holds."""
    records = {200: bench.size(2_000, 450_000), 2_000: bench.size(1_000, 250_000), 20_000: bench.size(600, 80_000)}
    return f"bench.r6.in{value_bytes}", records[value_bytes]


def _prepare_inputs(bench: Bench) -> None:
    for value_bytes in VALUE_BYTES[2:] if bench.quick else VALUE_BYTES:
        load.fill(bench.kafka, *_input(bench, value_bytes), value_bytes=value_bytes, noise=True)


def _processor(bench: Bench, value_bytes: int) -> Contender:
    topic, records = _input(bench, value_bytes)
    # The first quarter warms up.
    window = Window(records // 4, records, 240.0)
    return contender(REGISTRY_FLOW, topic, 50, "noop", window, name=_bytes_name(value_bytes), linger_ms=5)


def _cases(bench: Bench) -> Sequence[Case]:
    sinks = [Contender(name, partial(measure_backlog, log)) for name, log in _logs(bench).items()]
    processors = [_processor(bench, size) for size in (VALUE_BYTES[2:] if bench.quick else VALUE_BYTES)]
    registries = [Contender(_rows_name(rows), partial(_measure_registry, rows)) for rows in _registries(bench)]
    return [
        Case(SINK, sinks, prepare=_fill_logs),
        Case(PROCESSOR_PAYLOAD, processors, prepare=_prepare_inputs),
        Case(REGISTRY, registries, prepare=_prepare_registries),
    ]


def _payload_lines(value_bytes: int) -> list[Line]:
    name, sink = _bytes_name(value_bytes), _sink_name(value_bytes=value_bytes)
    return [
        Line(f"Sink, {sink}", (SINK, sink, RATE), "records/s"),
        Line(f"Processor, values of {name}", (PROCESSOR_PAYLOAD, name, RATE), "records/s"),
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
    *(Line(f"Sink, {_sink_name(count)}", (SINK, _sink_name(count), RATE), "records/s") for count in COUNTS),
    *(line for size in VALUE_BYTES[1:] for line in _payload_lines(size)),
    *(line for rows in (ROWS[0], ROWS[-1]) for line in _registry_lines(rows)),
)


ROW: Final = Row(6, "Growth", _cases, LINES, ("sink-by-partitions", "by-payload", "by-registry"))
