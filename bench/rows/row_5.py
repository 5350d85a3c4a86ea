"""Row 5: what a sweep costs, how fast it exports, and how long the view takes to be exact after an outage."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from bench.contenders.our_settings import connection_to, drop, install, our_settings
from bench.contenders.our_sink import measure_outage
from bench.contenders.our_sweeper import measure_due, measure_export
from bench.contenders.registry_rows import caught_up, stand
from bench.contenders.wait_log import WaitLog
from bench.contenders.wait_log_writer import fill, make_topics
from bench.harness.row import Bench, Case, Contender, Figures, Row
from bench.harness.target import at_least, at_most
from bench.rows.explained import EXPORT as EXPORT_COSTS
from bench.rows.explained import missed
from bench.rows.figure_lines import figure_line, ratio_line
from wait_registry.settings.root import Settings

ABOUT: Final = """\
The sweeper is `waitreg sweeper` as a user runs it, with an interval of 1 s instead of 30 s and else at its
defaults. What a sweep takes is what it writes down itself in the table `sweep`: from taking its lock to the last
partition's result, neither the process's start nor the pause between sweeps. The first three sweeps, which start
Spark's Python workers, aren't counted.

*Due among others.* Rows that aren't due stand in `wait`: 10,000, and 10 million in a FULL run (else 1 million), made by
Postgres itself, vacuumed and analysed. Among them 100 registrations become due, again and again: their wait records are
in the log, their rows and the log's end in Postgres, as a sink that has caught up leaves them. No sink runs, so that
nothing else wants the two cores; the benchmark deletes the exported rows in its stead. Each sweep that exported another
number than 100, or left anything out, fails the turn. *Nothing due* is the sweeper's question to Postgres, asked by
its own function over an open connection; the whole sweep with nothing due is told beside it. So are the two parts of a
sweep of 100 that Postgres has, asked by the sweeper's own functions while it doesn't run: which partitions have rows
due, and those rows, a connection and a snapshot for each partition. The rest of a sweep is Spark's and Kafka's.

*Export.* All of 1 million registrations (250,000 unless FULL) in the sweeper's first sweep, so with a JVM that has just
started, in chunks of 5,000 and one Kafka transaction each.

*Outage.* The sink was away while 5 million records came (1 million unless FULL), tombstones 1,000 records after their
waits, every thousandth wait left open. From the start of its process until the view is exact: its positions are the
log's ends, and the rows in `wait` are those that were left open, counted. The first batches are small on purpose
(nobody knows yet how large the records are), so this is slower than row 4, which leaves them out.

Compaction is kept away by `min.compaction.lag.ms`; a checkpoint is written before each turn.
"""

DUE: Final = "100 due"
FEW: Final = "among few rows"
MANY: Final = "among many rows"
EXPORT: Final = "export"
OUTAGE: Final = "after an outage"
SWEEPER: Final = "sweeper"
SINK: Final = "sink"


def _among(name: str) -> WaitLog:
    return WaitLog(f"bench.r5.{name}", waits=0)


def _settings(bench: Bench, name: str) -> Settings:
    return our_settings(bench, _among(name), f"bench_r5_{name}")


def _prepare_due(bench: Bench) -> None:
    for name, rows in (("few", bench.size(200, 10_000)), ("many", bench.size(2_000, 1_000_000, 10_000_000))):
        settings = _settings(bench, name)
        make_topics(settings)
        drop(settings)
        install(settings)
        stand(bench, settings, rows)
        with connection_to(settings) as connection:
            caught_up(connection, settings)


def _measure_due(name: str, bench: Bench) -> Figures:
    return measure_due(bench, _among(name), _settings(bench, name))


def _measure_export(bench: Bench) -> Figures:
    return measure_export(bench, WaitLog("bench.r5.export", waits=bench.size(2_000, 250_000, 1_000_000)))


def _behind(bench: Bench) -> WaitLog:
    return WaitLog("bench.r5.outage", waits=bench.size(2_000, 500_000, 2_500_000), left_open_every=1_000)


def _cases(bench: Bench) -> Sequence[Case]:
    due = [Contender(FEW, partial(_measure_due, "few")), Contender(MANY, partial(_measure_due, "many"))]
    outage = Contender(SINK, lambda bench: measure_outage(bench, _behind(bench)))
    # What the smoke leaves out runs by the same code as what it plays, here or in rows 4 and 6.
    cases = [
        Case(DUE, due[1:] if bench.quick else due, prepare=_prepare_due),
        Case(EXPORT, [Contender(SWEEPER, _measure_export)]),
        Case(OUTAGE, [outage], prepare=lambda bench: fill(bench, _behind(bench))),
    ]
    return [case for case in cases if not (bench.quick and case.name == OUTAGE)]


LINES: Final = (
    figure_line("A sweep of 100 due rows among 10,000", (DUE, FEW, "sweep_ms"), "ms"),
    figure_line("A sweep of 100 due rows among 10 million (1 million unless FULL)", (DUE, MANY, "sweep_ms"), "ms"),
    ratio_line(
        "The latter divided by the former",
        (DUE, MANY, "sweep_ms"),
        (DUE, FEW, "sweep_ms"),
        target=at_most(1.2),
        why=missed("sweeps"),
    ),
    *(
        figure_line(f"Of a sweep, {part}: among {among}", (DUE, contender, name), "ms")
        for part, name in (("the question what is due", "due_query_ms"), ("reading the rows", "view_read_ms"))
        for among, contender in (("10,000", FEW), ("10 million (1 million unless FULL)", MANY))
    ),
    figure_line(
        "Nothing due among as many: the sweeper's question",
        (DUE, MANY, "nothing_due_ms"),
        "ms",
        target=at_most(5),
        why=missed("sweeps"),
    ),
    figure_line("The same, 99th percentile", (DUE, MANY, "nothing_due_p99_ms"), "ms"),
    figure_line("Nothing due among as many: the whole sweep", (DUE, MANY, "nothing_due_sweep_ms"), "ms"),
    figure_line(
        "Export of 1 million rows (250,000 unless FULL)",
        (EXPORT, SWEEPER, "rows_per_s"),
        "rows/s",
        target=at_least(30_000),
        why=EXPORT_COSTS,
    ),
    figure_line("Memory of all its processes at most, meanwhile", (EXPORT, SWEEPER, "driver_peak_mb"), "MB"),
    figure_line(
        "Sink, 5 million records behind (1 million unless FULL): start-up and all",
        (OUTAGE, SINK, "overall_records_per_s"),
        "records/s",
    ),
    figure_line("The same: until the view is exact", (OUTAGE, SINK, "exact_s"), "s"),
    figure_line("The same, once warm", (OUTAGE, SINK, "records_per_s"), "records/s"),
)

ROW: Final = Row(5, "Sweeps, exports and catching up", ABOUT, _cases, LINES)
