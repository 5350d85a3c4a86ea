"""Row 5: what a sweep costs, how fast it exports, and how long the tables take to be exact after an outage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from bench.contenders.our_redrive import measure_redrive
from bench.contenders.our_sink import measure_backlog
from bench.contenders.our_sweeper import measure_due, measure_export, prepare_log
from bench.contenders.product import drop, fresh_schema, install, settings_of
from bench.contenders.standing_rows import stand
from bench.contenders.wait_log import WaitLog, fill
from bench.harness.row import Bench, Case, Contender, Figures, Line, Pair, Row
from wait_registry.settings.tree import Settings

DUE: Final = "100 due"
FEW: Final = "among few rows"
MANY: Final = "among many rows"
EXPORT: Final = "export"
OUTAGE: Final = "after an outage"
REDRIVE: Final = "redrive"
SWEEPER: Final = "sweeper"
SINK: Final = "sink"


def _settings(bench: Bench, name: str) -> Settings:
    return settings_of(bench, f"bench.r5.{name}", schema=f"bench_r5_{name}")


def _prepare_due(bench: Bench) -> None:
    for name, rows in (("few", bench.size(200, 10_000)), ("many", bench.size(2_000, 1_000_000, 10_000_000))):
        settings = _settings(bench, name)
        prepare_log(bench, WaitLog(settings.wait.topic))
        drop(settings)
        install(bench, settings)
        stand(bench, settings, rows)


def _measure_due(name: str, bench: Bench) -> Figures:
    return measure_due(bench, _settings(bench, name))


def _measure_due_among_few(bench: Bench) -> Figures:
    """Measure a checkout in tables of a turn's own, which its own `waitreg db migrate` makes."""
    log = WaitLog("bench.r5.pair")
    prepare_log(bench, log)
    with fresh_schema(bench, log.topic) as settings:
        stand(bench, settings, bench.size(200, 10_000))
        return measure_due(bench, settings)


def _due(bench: Bench) -> WaitLog:
    return WaitLog("bench.r5.export", bench.size(2_000, 250_000, 1_000_000))


def _behind(bench: Bench) -> WaitLog:
    return WaitLog("bench.r5.outage", bench.size(2_000, 500_000, 2_500_000), left_open_every=1_000)


def _redriven(bench: Bench) -> WaitLog:
    return WaitLog("bench.r5.redrive", bench.size(500, 20_000))


def _cases(bench: Bench) -> Sequence[Case]:
    due = [Contender(FEW, partial(_measure_due, "few")), Contender(MANY, partial(_measure_due, "many"))]
    behind = _behind(bench)
    late = Contender(SINK, partial(measure_backlog, behind, outage=True))
    # What the smoke leaves out runs by the same code as what it plays, here or in row 4.
    return [
        Case(DUE, due[1:] if bench.quick else due, prepare=_prepare_due),
        Case(EXPORT, [Contender(SWEEPER, partial(measure_export, _due(bench)))]),
        *([] if bench.quick else [Case(OUTAGE, [late], prepare=partial(fill, behind))]),
    ]


def _pairs(bench: Bench) -> Sequence[Pair]:
    behind, gains = _behind(bench), ("overall_records_per_s",)
    return [
        Pair(DUE, _measure_due_among_few, costs=("sweep_ms", "nothing_due_sweep_ms")),
        Pair(EXPORT, partial(measure_export, _due(bench)), gains=("rows_per_s",)),
        Pair(REDRIVE, partial(measure_redrive, _redriven(bench)), ("records_per_s",), ("cpu_us_per_record",)),
        Pair(OUTAGE, partial(measure_backlog, behind, outage=True), gains, prepare=partial(fill, behind)),
    ]


MISSED: Final = "../docs/decisions/0021-what-the-targets-miss.md#sweeps"
EXPORTS: Final = "../docs/decisions/0020-what-an-export-costs.md"
EXPORTED: Final = (EXPORT, SWEEPER, "rows_per_s")
CAUGHT_UP: Final = (OUTAGE, SINK, "overall_records_per_s")
LINES: Final = (
    Line("A sweep of 100 due rows among 10,000", (DUE, FEW, "sweep_ms"), "ms"),
    Line("A sweep of 100 due rows among 10 million (1 million unless FULL)", (DUE, MANY, "sweep_ms"), "ms"),
    Line("The latter / the former", (DUE, MANY, "sweep_ms"), to=(DUE, FEW, "sweep_ms"), most=1.2, why=MISSED),
    Line("Nothing due: the sweeper's question", (DUE, MANY, "nothing_due_ms"), "ms", most=5, why=MISSED),
    Line("Export of 1 million rows (250,000 unless FULL)", EXPORTED, "rows/s", least=30_000, why=EXPORTS),
    Line("Sink, 5 million records behind (1 million unless FULL), start-up included", CAUGHT_UP, "records/s"),
    Line("The same: until the tables are exact", (OUTAGE, SINK, "exact_s"), "s"),
)

ROW: Final = Row(5, "Sweeps, exports and catching up", _cases, LINES, pairs=_pairs)
