"""Row 6: how the sink's pace changes with partitions, with the payload and with the registry."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from bench.contenders.our_sink import measure_backlog, read_log
from bench.contenders.product import drop, install, settings_of
from bench.contenders.standing_rows import stand
from bench.contenders.wait_log import WaitLog, fill
from bench.harness.row import Bench, Case, Contender, Figures, Line, Row
from wait_registry.settings.tree import Settings

SINK: Final = "sink"
REGISTRY: Final = "registry"
# Partitions of the wait topic, and bytes of a value.
SHAPES: Final = ((1, 200), (4, 200), (16, 200), (4, 2_000), (4, 20_000))
ROWS: Final = (10_000, 1_000_000, 10_000_000)
RATE: Final = "records_per_s"


def _sink_name(partitions: int, value_bytes: int) -> str:
    return f"{partitions} partition{'s' if partitions > 1 else ''}, {value_bytes:,} B"


def _rows_name(rows: int) -> str:
    return f"{rows:,} rows"


def _log(bench: Bench, partitions: int, value_bytes: int) -> WaitLog:
    waits = {200: bench.size(2_000, 750_000), 2_000: bench.size(1_000, 500_000), 20_000: bench.size(600, 30_000)}
    topic = f"bench.r6.p{partitions}.b{value_bytes}"
    return WaitLog(topic, waits[value_bytes], partitions=partitions, value_bytes=value_bytes)


def _registry(bench: Bench, rows: int) -> tuple[WaitLog, Settings]:
    log = WaitLog(f"bench.r6.n{rows}", bench.size(2_000, 750_000))
    return log, settings_of(bench, log.topic, log.partitions, f"bench_r6_n{rows}")


def _prepare_registry(rows: Sequence[int], bench: Bench) -> None:
    for standing in rows:
        log, settings = _registry(bench, standing)
        fill(log, bench)
        drop(settings)
        install(bench, settings)
        stand(bench, settings, standing)


def _measure_registry(rows: int, bench: Bench) -> Figures:
    return read_log(bench, *_registry(bench, rows), start_over=True)


def _cases(bench: Bench) -> Sequence[Case]:
    logs = {shape: _log(bench, *shape) for shape in (SHAPES[-1:] if bench.quick else SHAPES)}
    rows = (500,) if bench.quick else ROWS if bench.first_of_full else ROWS[:2]

    def fill_all(bench: Bench) -> None:
        for log in logs.values():
            fill(log, bench)

    sinks = [Contender(_sink_name(*shape), partial(measure_backlog, log)) for shape, log in logs.items()]
    registries = [Contender(_rows_name(each), partial(_measure_registry, each)) for each in rows]
    return [Case(SINK, sinks, prepare=fill_all), Case(REGISTRY, registries, prepare=partial(_prepare_registry, rows))]


def _registry_place(rows: int) -> tuple[str, str, str]:
    return (REGISTRY, _rows_name(rows), RATE)


LINES: Final = (
    *(Line(f"Sink, {_sink_name(*shape)}", (SINK, _sink_name(*shape), RATE), "records/s") for shape in SHAPES),
    *(Line(f"Sink, {_rows_name(rows)} in `wait`", _registry_place(rows), "records/s") for rows in ROWS),
    Line("10,000,000 rows / 10,000 rows", _registry_place(ROWS[-1]), to=_registry_place(ROWS[0])),
)

ROW: Final = Row(6, "Growth", _cases, LINES)
