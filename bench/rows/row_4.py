"""Row 4: the sink against Spark's source alone, and against Kafka Connect in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from bench.contenders import bare_source, debezium_sink, row_at_a_time_sink
from bench.contenders.our_sink import measure_backlog, measure_small_batches
from bench.contenders.wait_log import WaitLog
from bench.contenders.wait_log_writer import fill
from bench.harness.row import Bench, Case, Contender, Figures, Line, Round, Row
from bench.harness.target import Target, at_least, at_most
from bench.rows.explained import SINK as SINKS_BATCHES
from bench.rows.explained import missed
from bench.rows.figure_lines import Place, figure_line, ratio_line

ABOUT: Final = """\
The sink is `waitreg sink` as a user runs it, at its defaults (Spark on two threads, heap 512 MB), on a topic
of 4 partitions made as `waitreg topics create` makes it: real wait records with all their headers and values of 200
bytes that hardly compress, and their tombstones. Nothing of it knows that it is measured: its position is read in
Postgres every 20 ms (*commits* are the steps that are seen there within the stretch that counts), CPU time and memory
of its two processes (Python and the JVM) in `/proc`. A turn whose view isn't exactly what the log says fails.

*Records* are wait records and tombstones alike. All contenders of a line read the same topic from its beginning, which
lies in the page cache, as it does for a sink that keeps up. Of the sink and of Spark's source counts the same stretch:
from 40 % of the records on, when compilers have done their work and batches have grown from 2,000 records to their full
size, to the last wait record; what follows are tombstones alone.

*The bare source* is Spark's Kafka source with the sink's own options, columns and headers, each batch given to Spark's
`noop` writer, one after the other without a pause. Its session is one of its own, for no second process can look into
the sink's: made by the same function from the same settings, in the same minutes, by turns with the sink.

*Tombstones 1,000 records later*: most waits are resolved within their batch and never become a row. *250,000 records
later*: each wait becomes a row in one batch and is deleted in a later one. Rows written are those inserted or updated
in `wait` as Postgres counts them, by the number of waits: what is open at the end of a batch, so the fewer the larger
batches are; judged over the whole run, the small first batches included, for of the peers it is the whole run too. Keys
of tombstones, which go through a temporary table that isn't logged, aren't rows of the registry.

*Kafka Connect*, and a consumer that upserts a row at a time, read the beginning of the same topic by turns with the
sink, as much of it as they manage in 30 s, of which the first 10 s don't count. Debezium's sink has as many tasks here
as did best of one, two and four on two cores: one with its buffer (twice the CPU a record with two), four without; its
batches hold 5,000 records.

*100 records* are published at random moments to an idle sink, again and again, and looked for every 10 ms; the trigger
is 1 s. *Idle* is measured after that, over half a minute (a minute in a FULL run), in which positions are written down
at least once. *Memory* is the most that was resident at any time (`VmHWM`), JVM and Python added up although their
peaks needn't meet; judged where it is more, of tombstones 1,000 and 250,000 records later.

What would distort this, and is kept away: compaction during a turn (`min.compaction.lag.ms`), what an earlier turn left
for Postgres to do (schema of its own, checkpoint before), a full queue of the broker's (all is written before the first
turn). What isn't: broker and Postgres share the two cores with whoever is measured, autovacuum included.
"""

NEAR: Final = "tombstones 1,000 records later"
FAR: Final = "tombstones 250,000 records later"
QUIET: Final = "100 records at a time"
SINK: Final = "sink"
SOURCE: Final = "bare source"
BUFFERED: Final = "Debezium with its reduction buffer"
UNBUFFERED: Final = "Debezium"
ROW_AT_A_TIME: Final = "row at a time"

# How long a peer reads after its first commit, s.
PEER_S: Final = 30.0
PER_CENT: Final = 100.0
# The best of 1, 2 and 4 on two cores; with its buffer it is 1.
UNBUFFERED_TASKS: Final = 4
RATE: Final = "records_per_s"
SHARE: Final = "written_share"
WARM_SHARE: Final = "warm_written_share"


def _near(bench: Bench) -> WaitLog:
    return WaitLog("bench.r4.near", waits=bench.size(1_500, 1_000_000))


def _far(bench: Bench) -> WaitLog:
    return WaitLog("bench.r4.far", waits=bench.size(1_500, 1_000_000), tombstone_after=250_000)


def _fill_near(bench: Bench) -> None:
    fill(bench, _near(bench))


def _fill_far(bench: Bench) -> None:
    fill(bench, _far(bench))


def _sink_near(bench: Bench) -> Figures:
    return measure_backlog(bench, _near(bench))


def _sink_far(bench: Bench) -> Figures:
    return measure_backlog(bench, _far(bench))


def _source(bench: Bench) -> Figures:
    return bare_source.measure(bench, _near(bench))


def _quiet(bench: Bench) -> Figures:
    return measure_small_batches(bench, WaitLog("bench.r4.quiet", waits=0))


def _debezium(log: WaitLog, buffered: bool, bench: Bench) -> Figures:
    # Its manual asks for statements of many rows beside the buffer; without it Postgres would refuse them.
    tasks = 1 if buffered else UNBUFFERED_TASKS
    measure = partial(debezium_sink.measure, reduction_buffer=buffered, rewrite_inserts=buffered, tasks=tasks)
    return _measured_by(measure, log, bench)


def _row_at_a_time(log: WaitLog, bench: Bench) -> Figures:
    return _measured_by(row_at_a_time_sink.measure, log, bench)


def _measured_by(measure: Callable[..., Figures], log: WaitLog, bench: Bench) -> Figures:
    return measure(
        bench, log.topic, log.records, waits=log.waits, left_open=log.left_open, stretch=log.measured, limit_s=PEER_S
    )


def _peer(name: str, log: WaitLog) -> Contender:
    """Describe one of those who do the sink's work in its place."""
    if name == ROW_AT_A_TIME:
        return Contender(name, partial(_row_at_a_time, log), row_at_a_time_sink.LACKS)
    measure = partial(_debezium, log, name == BUFFERED)
    return Contender(name, measure, debezium_sink.LACKS, debezium_sink.VERSION)


def _cases(bench: Bench) -> Sequence[Case]:
    near, far = _near(bench), _far(bench)
    sink = Contender(SINK, _sink_near)
    source = Contender(SOURCE, _source, "Reads and forgets: no compaction, no decoding, no Postgres.")
    # A smoke has no 250,000 records, and Debezium once is enough to see that it can be measured.
    names = (BUFFERED, ROW_AT_A_TIME) if bench.quick else (BUFFERED, UNBUFFERED, ROW_AT_A_TIME)
    cases = [
        Case(NEAR, [source, sink, *(_peer(name, near) for name in names)], prepare=_fill_near),
        Case(FAR, [Contender(SINK, _sink_far), _peer(BUFFERED, far)], prepare=_fill_far),
        Case(QUIET, [Contender(SINK, _quiet)]),
    ]
    return [case for case in cases if not (bench.quick and case.name == FAR)]


def _percent(text: str, place: Place, target: Target | None = None, why: str = "") -> Line:
    return figure_line(text, place, "%", target=target, factor=PER_CENT, why=why)


def _driver_peak_mb(round_: Round) -> float:
    return max(round_.figure(case, SINK, "driver_peak_mb") for case in (NEAR, FAR))


DEBEZIUM: Final = missed("sink-and-debezium")
LINES: Final = (
    figure_line(
        "Whole sink, tombstones 1,000 records later",
        (NEAR, SINK, RATE),
        "records/s",
        aim=at_least(150_000),
        why=SINKS_BATCHES,
    ),
    figure_line("Its commits within the stretch that counts", (NEAR, SINK, "warm_commits"), "commits"),
    figure_line("Bare source, with headers", (NEAR, SOURCE, RATE), "records/s"),
    ratio_line(
        "Sink / bare source",
        (NEAR, SINK, RATE),
        (NEAR, SOURCE, RATE),
        target=at_least(0.5),
        why=SINKS_BATCHES,
    ),
    figure_line("Sink's CPU a record, driver alone", (NEAR, SINK, "cpu_us_per_record"), "µs"),
    figure_line("Bare source's CPU a record", (NEAR, SOURCE, "cpu_us_per_record"), "µs"),
    figure_line("Debezium with its reduction buffer", (NEAR, BUFFERED, RATE), "records/s"),
    figure_line("Debezium without it", (NEAR, UNBUFFERED, RATE), "records/s"),
    figure_line("A row at a time", (NEAR, ROW_AT_A_TIME, RATE), "records/s"),
    ratio_line(
        "Sink / Debezium with its buffer",
        (NEAR, SINK, RATE),
        (NEAR, BUFFERED, RATE),
        target=at_least(4),
        why=DEBEZIUM,
    ),
    ratio_line(
        "Sink / Debezium without it", (NEAR, SINK, RATE), (NEAR, UNBUFFERED, RATE), target=at_least(20), why=DEBEZIUM
    ),
    ratio_line("Sink / a row at a time", (NEAR, SINK, RATE), (NEAR, ROW_AT_A_TIME, RATE)),
    _percent("Rows written, of the waits: sink", (NEAR, SINK, SHARE), at_most(0.5), SINKS_BATCHES),
    _percent("Rows written: sink, once warm", (NEAR, SINK, WARM_SHARE)),
    _percent("Rows written: Debezium with its buffer", (NEAR, BUFFERED, SHARE)),
    _percent("Rows written: Debezium without it", (NEAR, UNBUFFERED, SHARE)),
    _percent("Rows written: a row at a time", (NEAR, ROW_AT_A_TIME, SHARE)),
    figure_line("Sink's largest commit", (NEAR, SINK, "largest_batch_records"), "records"),
    figure_line("Postgres' log a wait: sink", (NEAR, SINK, "wal_bytes_per_wait"), "B"),
    figure_line("Postgres' log a wait: Debezium with its buffer", (NEAR, BUFFERED, "wal_bytes_per_wait"), "B"),
    figure_line(
        "Whole sink, tombstones 250,000 records later",
        (FAR, SINK, RATE),
        "records/s",
        target=at_least(50_000),
        why=SINKS_BATCHES,
    ),
    figure_line("Its commits within the stretch that counts, the same", (FAR, SINK, "warm_commits"), "commits"),
    figure_line("Debezium with its buffer, the same", (FAR, BUFFERED, RATE), "records/s"),
    ratio_line(
        "Sink / Debezium, the same", (FAR, SINK, RATE), (FAR, BUFFERED, RATE), target=at_least(1.3), why=DEBEZIUM
    ),
    figure_line("100 records, publish to visible rows: median", (QUIET, SINK, "visible_p50_s"), "s"),
    figure_line(
        "The same, 95th percentile, beyond the trigger's 1 s",
        (QUIET, SINK, "beyond_trigger_p95_s"),
        "s",
        target=at_most(0.5),
        why=missed("a-hundred-records"),
    ),
    Line("Sink's driver at most, heap 512 MB", _driver_peak_mb, "MB", at_most(1_000), why=SINKS_BATCHES),
    figure_line("Its JVM at most, tombstones 1,000 records later", (NEAR, SINK, "jvm_peak_mb"), "MB"),
    figure_line("Its JVM at most, 250,000 records later", (FAR, SINK, "jvm_peak_mb"), "MB"),
    figure_line(
        "Sink idle, CPU of a core",
        (QUIET, SINK, "idle_cpu_percent"),
        "%",
        target=at_most(2),
        why=missed("an-idle-sink"),
    ),
)

ROW: Final = Row(4, "The sink", ABOUT, _cases, LINES)
