"""Row 4: the sink against Spark's source alone, and against Kafka Connect in its place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from bench.contenders import bare_source, debezium_sink
from bench.contenders.our_sink import measure_backlog, measure_small_batches
from bench.contenders.wait_log import WaitLog, fill
from bench.harness.row import Bench, Case, Contender, Line, Pair, Row

NEAR: Final = "tombstones 1,000 records later"
FAR: Final = "tombstones 250,000 records later"
QUIET: Final = "100 records at a time"
SINK: Final = "sink"
SOURCE: Final = "bare source"
BUFFERED: Final = "Debezium with its reduction buffer"
UNBUFFERED: Final = "Debezium"
RATE: Final = "records_per_s"
CPU: Final = "cpu_us_per_record"
SERIAL: Final = "serial_cpu_us_per_record"


FAR_LOG: Final = WaitLog("bench.r4.far", 1_000_000, tombstone_after=250_000)


def _near(bench: Bench) -> WaitLog:
    return WaitLog("bench.r4.near", bench.size(1_500, 1_000_000))


def _debezium(name: str, log: WaitLog) -> Contender:
    return Contender(name, partial(debezium_sink.measure, name == BUFFERED, log))


def _cases(bench: Bench) -> Sequence[Case]:
    near = _near(bench)
    contenders = [
        Contender(SOURCE, partial(bare_source.measure, near)),
        Contender(SINK, partial(measure_backlog, near)),
        _debezium(BUFFERED, near),
        *([] if bench.quick else [_debezium(UNBUFFERED, near)]),
    ]
    far_contenders = [Contender(SINK, partial(measure_backlog, FAR_LOG)), _debezium(BUFFERED, FAR_LOG)]
    # A smoke has no 250,000 records.
    far_case = [] if bench.quick else [Case(FAR, far_contenders, prepare=partial(fill, FAR_LOG))]
    quiet = Contender(SINK, partial(measure_small_batches, WaitLog("bench.r4.quiet")))
    return [Case(NEAR, contenders, prepare=partial(fill, near)), *far_case, Case(QUIET, [quiet])]


def _pairs(bench: Bench) -> Sequence[Pair]:
    gains, costs = (RATE, "overall_records_per_s"), (CPU, SERIAL)
    logs = {NEAR: _near(bench), FAR: FAR_LOG}
    return [Pair(name, partial(measure_backlog, log), gains, costs, partial(fill, log)) for name, log in logs.items()]


MISSED: Final = "../docs/decisions/0021-what-the-targets-miss.md"
BATCHES: Final = "../docs/decisions/0018-the-sinks-batches.md"
DEBEZIUM: Final = f"{MISSED}#sink-and-debezium"


HUNDRED: Final = f"{MISSED}#a-hundred-records"
BEYOND: Final = (QUIET, SINK, "beyond_trigger_p95_s")


def _rate(text: str, case: str, name: str, least: float | None = None) -> Line:
    return Line(text, (case, name, RATE), "records/s", least=least, why=BATCHES)


def _times(text: str, case: str, name: str, least: float | None, why: str = DEBEZIUM) -> Line:
    return Line(text, (case, SINK, RATE), to=(case, name, RATE), least=least, why=why)


def _written(name: str, most: float | None = None) -> Line:
    place = (NEAR, name, "written_share")
    return Line(f"Rows written, of the waits: {name}", place, "%", factor=100, most=most, why=BATCHES)


def _driver(text: str, case: str) -> Line:
    return Line(text, (case, SINK, "driver_peak_mb"), "MB", most=1_000, why=BATCHES)


LINES: Final = (
    _rate("Whole sink, tombstones 1,000 records later", NEAR, SINK, 150_000),
    _rate("Bare source, with headers", NEAR, SOURCE),
    _times("Sink / bare source", NEAR, SOURCE, 0.5, BATCHES),
    Line("Sink's CPU per record, driver alone", (NEAR, SINK, CPU), "µs"),
    Line("Serial CPU per record (driver and its session), the same", (NEAR, SINK, SERIAL), "µs"),
    _rate("Debezium with its reduction buffer", NEAR, BUFFERED),
    _rate("Debezium without it", NEAR, UNBUFFERED),
    _times("Sink / Debezium with its buffer", NEAR, BUFFERED, 4),
    _times("Sink / Debezium without it", NEAR, UNBUFFERED, 20),
    _written(SINK, 0.5),
    _written(BUFFERED),
    _rate("Whole sink, tombstones 250,000 records later", FAR, SINK, 50_000),
    Line("Serial CPU per record, tombstones 250,000 records later", (FAR, SINK, SERIAL), "µs"),
    _rate("Debezium with its buffer, the same", FAR, BUFFERED),
    _times("Sink / Debezium, the same", FAR, BUFFERED, 1.3),
    Line("100 records, publish to visible rows: median", (QUIET, SINK, "visible_p50_s"), "s"),
    Line("The same, 95th percentile, beyond the poll interval of 1 s", BEYOND, "s", most=0.5, why=HUNDRED),
    _driver("Sink's driver at most, heap 512 MB", NEAR),
    _driver("The same, tombstones 250,000 records later", FAR),
    Line("Sink idle, CPU of a core", (QUIET, SINK, "idle_cpu_percent"), "%", most=2, why=f"{MISSED}#an-idle-sink"),
)

ROW: Final = Row(4, "The sink", _cases, LINES, pairs=_pairs)
