"""Row 6: what grows with partitions, with the registry and with the payload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from bench.contenders import load
from bench.contenders.dead_letter_rows import stand_dead_letters
from bench.contenders.flows import REGISTRY as REGISTRY_FLOW
from bench.contenders.flows import Window, contender
from bench.contenders.incident_queries import measure_queries
from bench.contenders.our_settings import connection_to, drop, install, our_settings
from bench.contenders.our_sink import measure_backlog, read_log
from bench.contenders.our_sweeper import measure_due
from bench.contenders.registry_rows import stand, start_over, tidy
from bench.contenders.wait_log import WaitLog
from bench.contenders.wait_log_writer import fill
from bench.harness.row import Axis, Bench, Case, Contender, Figures, Line, Plot, Points, Round, Row
from bench.rows.figure_lines import figure_line, ratio_line

ABOUT: Final = """\
Sink and sweeper are measured as in rows 4 and 5, the processor as in row 2 (N = 50, `linger_ms = 5`). Tombstones come
1,000 records after their waits throughout. Each size has a topic and a schema of its own.

*Partitions*: the same records in wait topics of 1, 4 and 16 partitions, one sink with Spark's two threads.

*Registry*: 10,000 and 1 million rows, and 10 million in the first round of a FULL run, stand in `wait`, all of the
sink's own topic and none of them due. Beside them stand a fifth as many dead letters, 2 million at most, older than a
week: half of them expired, a tenth of those finished late, with its row in `late_outcome`. Then every incident query is
asked, a sink reads a log that leaves no row behind, so that nearly every key that it deletes is absent, and a sweeper
exports 100 rows again and again. The sink's time is that of 100,000 records once warm. Of the queries the slowest that
looks something up is shown, and the slowest that counts all rows, which can't but grow.

*Payload*: values of 200 B, 2 kB and 20 kB that hardly compress, for sink and processor alike; the records are fewer the
larger they are. Batches of the sink are bounded in bytes too, so that its memory is told beside it. The processor's
handler does nothing. The sink's 4 partitions and its 200 B are one measurement.
"""

SINK: Final = "sink"
REGISTRY: Final = "registry"
PROCESSOR_PAYLOAD: Final = "payload, processor"
COUNTS: Final = (1, 4, 16)
VALUE_BYTES: Final = (200, 2_000, 20_000)
PARTITIONS: Final = 4
ROWS: Final = (10_000, 1_000_000, 10_000_000)
RECORDS_A_BATCH: Final = 100_000
IN_FLIGHT: Final = 50
LINGER: Final = ("--linger-ms", "5")
SWEEPS: Final = 5
# The first quarter warms up.
WARM: Final = 4


def _sink_name(partitions: int = PARTITIONS, value_bytes: int = VALUE_BYTES[0]) -> str:
    return f"{partitions} partition{'s' if partitions > 1 else ''}, {_bytes_name(value_bytes)}"


def _rows_name(rows: int) -> str:
    return f"{rows:,} rows"


def _bytes_name(value_bytes: int) -> str:
    return f"{value_bytes:,} B"


# ---- partitions and payload: the sink -------------------------------------------------------------------------------


def _logs(bench: Bench) -> Mapping[str, WaitLog]:
    """Return what the sink reads, by the contender's name: the partitions vary, or the payload, never both."""
    shapes = [(count, VALUE_BYTES[0]) for count in COUNTS] + [(PARTITIONS, size) for size in VALUE_BYTES[1:]]
    chosen = shapes[-1:] if bench.quick else shapes
    return {_sink_name(*shape): _log(bench, *shape) for shape in chosen}


def _log(bench: Bench, partitions: int, value_bytes: int) -> WaitLog:
    waits = {200: bench.size(2_000, 750_000), 2_000: bench.size(1_000, 500_000), 20_000: bench.size(600, 30_000)}
    topic = f"bench.r6.p{partitions}.b{value_bytes}"
    return WaitLog(topic, waits=waits[value_bytes], partitions=partitions, value_bytes=value_bytes)


def _fill_logs(bench: Bench) -> None:
    for log in _logs(bench).values():
        fill(bench, log)


def _sink(name: str, log: WaitLog) -> Contender:
    return Contender(name, lambda bench: measure_backlog(bench, log))


# ---- registry -------------------------------------------------------------------------------------------------------


def _registries(bench: Bench) -> Sequence[int]:
    return (500,) if bench.quick else ROWS if bench.first_of_full else ROWS[:2]


def _log_of(bench: Bench, rows: int) -> WaitLog:
    return WaitLog(f"bench.r6.n{rows}", waits=bench.size(2_000, 750_000))


def _prepare_registries(bench: Bench) -> None:
    for rows in _registries(bench):
        log = _log_of(bench, rows)
        fill(bench, log)
        settings = our_settings(bench, log, f"bench_r6_n{rows}")
        drop(settings)
        install(settings)
        stand(bench, settings, rows)
        stand_dead_letters(bench, settings, rows)


def _measure_registry(rows: int, bench: Bench) -> Figures:
    log = _log_of(bench, rows)
    settings = our_settings(bench, log, f"bench_r6_n{rows}")
    queries = measure_queries(bench, settings)
    with connection_to(settings) as connection:
        start_over(connection, settings)
        sink = read_log(bench, log, settings)
        tidy(connection)
    swept = measure_due(bench, log, settings, SWEEPS)
    return {**queries, **sink, **swept, "sink_ms": RECORDS_A_BATCH / sink["records_per_s"] * 1000}


# ---- payload: the processor -----------------------------------------------------------------------------------------


def _sizes(bench: Bench) -> Sequence[int]:
    return VALUE_BYTES[2:] if bench.quick else VALUE_BYTES


def _input(bench: Bench, value_bytes: int) -> tuple[str, int]:
    """Return the input topic of a payload and how many records it holds."""
    records = {200: bench.size(2_000, 450_000), 2_000: bench.size(1_000, 250_000), 20_000: bench.size(600, 80_000)}
    return f"bench.r6.in{value_bytes}", records[value_bytes]


def _prepare_inputs(bench: Bench) -> None:
    for value_bytes in _sizes(bench):
        topic, records = _input(bench, value_bytes)
        load.fill(bench.kafka, topic, records, value_bytes=value_bytes, compressible=False)


def _processor(bench: Bench, value_bytes: int) -> Contender:
    topic, records = _input(bench, value_bytes)
    window = Window(records // WARM, records, 240.0)
    return contender(REGISTRY_FLOW, topic, IN_FLIGHT, "noop", window, *LINGER, name=_bytes_name(value_bytes))


# ---- the row --------------------------------------------------------------------------------------------------------


def _cases(bench: Bench) -> Sequence[Case]:
    sink = [_sink(name, log) for name, log in _logs(bench).items()]
    processor = [_processor(bench, size) for size in _sizes(bench)]
    registry = [Contender(_rows_name(rows), partial(_measure_registry, rows)) for rows in _registries(bench)]
    return [
        Case(SINK, sink, prepare=_fill_logs),
        Case(PROCESSOR_PAYLOAD, processor, prepare=_prepare_inputs),
        Case(REGISTRY, registry, prepare=_prepare_registries),
    ]


def _lines(rounds: Sequence[Round]) -> Sequence[Line]:
    measured = [rows for rows in ROWS if any(_has_registry(round_, rows) for round_ in rounds)]
    return [
        *(
            figure_line(
                f"Sink, wait topic of {_sink_name(count)}",
                (SINK, _sink_name(count), "records_per_s"),
                "records/s",
            )
            for count in COUNTS
        ),
        *(line for size in VALUE_BYTES for line in _payload_lines(size)),
        *(line for rows in measured for line in _registry_lines(rows)),
        *(_growth_lines(measured[0], measured[-1]) if measured[1:] else ()),
    ]


def _has_registry(round_: Round, rows: int) -> bool:
    place = (REGISTRY, _rows_name(rows))
    return place in round_.turns or place in round_.failures


def _payload_lines(value_bytes: int) -> Sequence[Line]:
    name, sink = _bytes_name(value_bytes), _sink_name(value_bytes=value_bytes)
    return [
        figure_line(f"Sink, values of {name}", (SINK, sink, "records_per_s"), "records/s"),
        figure_line(f"Sink, values of {name}: its commits", (SINK, sink, "warm_commits"), "commits"),
        figure_line(f"Sink, values of {name}: its driver at most", (SINK, sink, "driver_peak_mb"), "MB"),
        figure_line(f"Processor, values of {name}", (PROCESSOR_PAYLOAD, name, "records_per_s"), "records/s"),
    ]


def _registry_lines(rows: int) -> Sequence[Line]:
    name = _rows_name(rows)
    return [
        figure_line(f"{name} stand: sink", (REGISTRY, name, "records_per_s"), "records/s"),
        figure_line(f"{name} stand: a sweep of 100 due rows", (REGISTRY, name, "sweep_ms"), "ms"),
        figure_line(f"{name} stand: slowest look-up", (REGISTRY, name, "slowest_look_up_ms"), "ms"),
        figure_line(f"{name} stand: slowest count", (REGISTRY, name, "slowest_count_ms"), "ms"),
    ]


def _growth_lines(few: int, many: int) -> Sequence[Line]:
    least, most = _rows_name(few), _rows_name(many)
    return [
        ratio_line(f"{text}, {most} / {least}", (REGISTRY, most, name), (REGISTRY, least, name))
        for text, name in (("Sink's time", "sink_ms"), ("Sweep", "sweep_ms"), ("Look-up", "slowest_look_up_ms"))
    ]


def _by_partitions(round_: Round) -> Mapping[str, Points]:
    return {"sink": _points(round_, SINK, {_sink_name(count): count for count in COUNTS}, "records_per_s")}


def _by_payload(round_: Round) -> Mapping[str, Points]:
    sizes = {_bytes_name(size): size for size in VALUE_BYTES}
    sinks = {_sink_name(value_bytes=size): size for size in VALUE_BYTES}
    return {
        "sink": _points(round_, SINK, sinks, "records_per_s"),
        "processor": _points(round_, PROCESSOR_PAYLOAD, sizes, "records_per_s"),
    }


def _by_rows(round_: Round) -> Mapping[str, Points]:
    sizes = {_rows_name(rows): rows for rows in ROWS}
    curves = {
        "sink, 100,000 records": "sink_ms",
        "sweep of 100 due rows": "sweep_ms",
        "slowest look-up": "slowest_look_up_ms",
        "slowest count": "slowest_count_ms",
    }
    return {text: _points(round_, REGISTRY, sizes, name) for text, name in curves.items()}


def _points(round_: Round, case: str, contenders: Mapping[str, int], name: str) -> Points:
    """Return a figure of every contender that has it, over what the contender's name stands for."""
    return [
        (float(size), round_.figure(case, contender, name))
        for contender, size in contenders.items()
        if round_.has(case, contender, name)
    ]


PLOTS: Final = (
    Plot(
        "sink-by-partitions",
        "Sink by partitions of the wait topic",
        Axis("partitions", logarithmic=True),
        Axis("throughput", "records/s"),
        _by_partitions,
    ),
    Plot(
        "by-payload",
        "Sink and processor by size of the values",
        Axis("value", "B", logarithmic=True),
        Axis("throughput", "records/s", logarithmic=True),
        _by_payload,
    ),
    Plot(
        "by-registry",
        "What takes how long, by rows in the registry",
        Axis("rows in wait", logarithmic=True),
        Axis("time", "ms", logarithmic=True),
        _by_rows,
    ),
)

ROW: Final = Row(6, "Growth", ABOUT, _cases, _lines, PLOTS)
