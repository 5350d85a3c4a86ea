"""Every metric of every service: names, kinds, labels and meanings.

Names follow Prometheus' rules: base units in the name, counters end in ``_total``. The reference page
is generated from this file, and tests check dashboard and alerts against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

Kind = Literal["counter", "gauge", "histogram"]

HANDLER_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
QUEUE_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
STEP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

# A label whose values aren't known in advance; their number is bounded (topics, partitions, settings).
OPEN: Final[tuple[str, ...]] = ()


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: ``labels`` in the order in which values are given, ``buckets`` (upper bounds) of a histogram.

    ``known`` are the label values that are known in advance, as tuples in the order of the labels. They are exposed
    with 0 from the start, because a counter that appears with its first increment hides that increment from rate().
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()


def _counter(name: str, help: str, **labels: tuple[str, ...]) -> Metric:
    return Metric(name, "counter", help, tuple(labels), known=_known(labels))


def _gauge(name: str, help: str, **labels: tuple[str, ...]) -> Metric:
    return Metric(name, "gauge", help, tuple(labels), known=_known(labels))


def _histogram(name: str, help: str, buckets: tuple[float, ...], **labels: tuple[str, ...]) -> Metric:
    return Metric(name, "histogram", help, tuple(labels), buckets, _known(labels))


def _known(labels: dict[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    return tuple(product(*labels.values())) if labels else ()


OUTCOMES = ("done", "discarded", "retried", "dead_lettered")
RESULTS = ("done", "discarded", "failed")
STREAMS = ("wait", "dead_letter", "operations")

# ---- all services ---------------------------------------------------------------------------------------------------

READY = _gauge("waitreg_ready", "1 while /health/ready answers 200", service=OPEN)
BUILD_INFO = _gauge("waitreg_build_info", "Always 1; the label is the running version", version=OPEN)
CERTIFICATE_END = _gauge(
    "waitreg_certificate_end_timestamp_seconds",
    "When the certificate of a setting ends (epoch); without a series, the settings have no certificate",
    setting=OPEN,
)

# ---- processor ------------------------------------------------------------------------------------------------------

PROCESSOR_INFO = _gauge(
    "waitreg_processor_info",
    "Always 1; the labels are the consumer group and the name of this process in wait records and tables",
    consumer_group=OPEN,
    wait_instance=OPEN,
)
PROCESSOR_CONSUMED = _counter("waitreg_processor_consumed_total", "Records consumed from the input topics", topic=OPEN)
PROCESSOR_REGISTERED = _counter(
    "waitreg_processor_registered_total", "Wait records acknowledged by the broker, without renewals"
)
PROCESSOR_RENEWED = _counter(
    "waitreg_processor_renewed_total", "Records registered again because too little time was left to handle them"
)
PROCESSOR_SETTLED = _counter(
    "waitreg_processor_settled_total",
    "Records settled, by outcome; a registered one counts when its tombstone is acknowledged",
    outcome=OUTCOMES,
)
PROCESSOR_RETRIES = _counter(
    "waitreg_processor_retry_records_total",
    "Records that failed and will be handled again, by the delay of their retry topic",
    delay=OPEN,
)
PROCESSOR_PASSED_OVER = _counter(
    "waitreg_processor_passed_over_total",
    "Records of another group that were found in a retry or redelivery topic of this one, and not handled",
)
PROCESSOR_REFUSED = _gauge(
    "waitreg_processor_refused_records",
    "Records that hold the offset of their partition because their dead letter is too large for its topic",
)
PROCESSOR_START_PAUSE = _gauge(
    "waitreg_processor_start_pause_seconds",
    "Pause between the starts of two calls, because most calls of the last minute failed; 0 otherwise",
)
PROCESSOR_DEAD_LETTERS = _counter(
    "waitreg_processor_dead_letters_total",
    "Dead letters acknowledged, by reason; the handler wasn't called for unregistrable and malformed records",
    reason=("failed", "unregistrable", "malformed", "blocked"),
)
PROCESSOR_ATTEMPTS = _counter(
    "waitreg_processor_handler_attempts_total",
    "Handler calls that ended, by result; each attempt at a record counts",
    result=("ok", "error", "timeout"),
)
PROCESSOR_HANDLER_SECONDS = _histogram(
    "waitreg_processor_handler_seconds",
    "From the start of a record's first attempt to its result, all attempts and pauses included",
    HANDLER_SECONDS,
    result=RESULTS,
)
PROCESSOR_QUEUE_SECONDS = _histogram(
    "waitreg_processor_queue_seconds",
    "From the last registration of a record, or its poll if it isn't registered, to its first attempt",
    QUEUE_SECONDS,
)
PROCESSOR_QUEUE_LIMIT = _gauge(
    "waitreg_processor_queue_limit_seconds",
    "The longest wait for a first attempt; a record that waits longer is registered again",
)
PROCESSOR_IN_FLIGHT = _gauge("waitreg_processor_in_flight", "Handler calls that are running")
PROCESSOR_IN_FLIGHT_LIMIT = _gauge(
    "waitreg_processor_in_flight_limit",
    "Handler calls that may run at once now (processor.max_in_flight; with auto, the present limit)",
)
PROCESSOR_OLDEST_IN_FLIGHT = _gauge(
    "waitreg_processor_oldest_in_flight_seconds",
    "Time since the first attempt of the oldest record in flight; 0 if there is none",
)
PROCESSOR_BLOCKED_SLOTS = _gauge(
    "waitreg_processor_blocked_slots",
    "Worker slots held by calls that timed out and haven't ended: plain handlers, or async ones that ignore it",
)
PROCESSOR_ROUTE_FREE_SLOTS = _gauge(
    "waitreg_processor_route_free_slots",
    "Calls that a route with a max_in_flight of its own may still start; at 0 its records wait",
    route=OPEN,
)
PROCESSOR_LONG_CALLS = _gauge(
    "waitreg_processor_long_calls", "Worker slots held by calls that run for longer than processor.blocked_after_s"
)
PROCESSOR_BLOCKED_CANCELLED = _counter(
    "waitreg_processor_blocked_cancelled_total",
    "Calls cancelled because long calls held nearly all worker slots (processor.cancel_blocked)",
)
PROCESSOR_STALLED = _gauge(
    "waitreg_processor_stalled_seconds", "For how long the event loop has been blocked, by a handler or a lack of CPU"
)
PROCESSOR_WAITING = _gauge("waitreg_processor_waiting", "Records that wait for a free worker slot")
PROCESSOR_PREFETCH = _gauge("waitreg_processor_prefetch", "Records polled and not settled")
PROCESSOR_PREFETCH_LIMIT = _gauge(
    "waitreg_processor_prefetch_limit", "Records that may be polled and not settled now, at most"
)
PROCESSOR_PREFETCH_BYTES = _gauge(
    "waitreg_processor_prefetch_bytes", "Size of the prefetched records, in keys, values and headers"
)
PROCESSOR_PAUSED = _gauge(
    "waitreg_processor_paused", "1 while consumption is paused because the prefetch is at a limit"
)
PROCESSOR_UNACKNOWLEDGED = _gauge("waitreg_processor_unacknowledged", "Wait records sent and not yet acknowledged")
PROCESSOR_OUTBOX = _gauge(
    "waitreg_processor_outbox", "Tombstones, dead letters and renewed wait records not yet acknowledged"
)
PROCESSOR_ASSIGNED = _gauge("waitreg_processor_assigned_partitions", "Input partitions assigned to this process")
PROCESSOR_CONSUMER_LAG = _gauge(
    "waitreg_processor_consumer_lag",
    "Records of a consumed partition that haven't been consumed yet, those that aren't due included",
    topic=OPEN,
    partition=OPEN,
)
PROCESSOR_DUE_LAG = _gauge(
    "waitreg_processor_due_lag",
    "Those of them that are due: all, except in retry topics and delayed inputs",
    topic=OPEN,
    partition=OPEN,
)
PROCESSOR_COMMIT_LAG = _gauge(
    "waitreg_processor_commit_lag",
    "Records of an input partition that have been consumed and not committed",
    topic=OPEN,
    partition=OPEN,
)
PROCESSOR_COMMITS = _counter(
    "waitreg_processor_commits_total", "Offset commits, one per partition", result=("ok", "failed")
)
PROCESSOR_LAST_COMMIT = _gauge(
    "waitreg_processor_last_commit_timestamp_seconds", "Time of the last confirmed commit (epoch); 0 before the first"
)
PROCESSOR_REBALANCES = _counter(
    "waitreg_processor_rebalances_total", "Rebalance callbacks, by kind", kind=("assigned", "revoked", "lost")
)
PROCESSOR_BROKER_UP = _gauge("waitreg_processor_broker_up", "1 while the broker answers, 0 during an outage")
PROCESSOR_CLOCK_SKEW = _gauge(
    "waitreg_processor_clock_skew_seconds",
    "The certain part of the difference between the broker's clock and this host's, at the last acknowledgment",
)
PROCESSOR_CLOCK_SKEW_LIMIT = _gauge(
    "waitreg_processor_clock_skew_limit_seconds",
    "The clock difference, in either direction, at which the process stops",
)

# ---- sink -----------------------------------------------------------------------------------------------------------

SINK_RECORDS = _counter("waitreg_sink_records_total", "Records read, by stream", stream=STREAMS)
SINK_BATCHES = _counter("waitreg_sink_batches_total", "Transactions committed to Postgres", stream=STREAMS)
SINK_BATCH_SECONDS = _histogram(
    "waitreg_sink_batch_seconds",
    "From the first read of a batch to its commit in Postgres, including the wait for the batch before it",
    STEP_SECONDS,
    stream=STREAMS,
)
SINK_ROWS_WRITTEN = _counter("waitreg_sink_rows_written_total", "Rows inserted or replaced, by table", table=STREAMS)
SINK_ROWS_DELETED = _counter("waitreg_sink_rows_deleted_total", "Rows of the table wait deleted by tombstones")
SINK_QUARANTINED = _counter(
    "waitreg_sink_quarantined_total", "Records that couldn't be decoded, now in the table quarantine", stream=STREAMS
)
SINK_PASSED = _counter(
    "waitreg_sink_passed_offsets_total",
    "Offsets passed unread: their records were deleted from the topic before the sink read them",
    topic=OPEN,
)
SINK_LATE = _counter("waitreg_sink_finished_late_total", "Expired dead letters whose handler finished later")
SINK_LAG = _gauge(
    "waitreg_sink_lag",
    "Records between the sink's position and the end of the topic, at the last commit",
    topic=OPEN,
    partition=OPEN,
)
SINK_STALENESS = _gauge(
    "waitreg_sink_staleness_seconds",
    "Age of the tables: now minus position_time of the topic's oldest partition; an idle sink renews it",
    topic=OPEN,
)
SINK_STALENESS_LIMIT = _gauge(
    "waitreg_sink_staleness_limit_seconds",
    "The age from which the sink needs a rebuild: half of delete.retention.ms",
    topic=OPEN,
)
SINK_RESTARTS = _counter(
    "waitreg_sink_restarts_total",
    "Restarts of a failed stream, by cause; spark includes its reading from Kafka",
    stream=STREAMS,
    cause=("postgres", "kafka", "spark", "other"),
)
SINK_QUERY_UP = _gauge("waitreg_sink_query_up", "1 while the sink reads and writes the stream", stream=STREAMS)
SINK_STANDBY = _gauge("waitreg_sink_standby", "1 while this sink is a standby: another one holds the lock")
SINK_POSTGRES_UP = _gauge("waitreg_sink_postgres_up", "1 while Postgres answers")

# ---- sweeper --------------------------------------------------------------------------------------------------------

SWEEPER_SWEEPS = _counter(
    "waitreg_sweeper_sweeps_total",
    "Sweeps, by result: partial ones skipped rows or partitions, skipped ones ran while another sweeper swept",
    result=("done", "partial", "skipped", "failed"),
)
SWEEPER_SWEEP_SECONDS = _histogram("waitreg_sweeper_sweep_seconds", "Duration of a sweep", STEP_SECONDS)
SWEEPER_INTERVAL = _gauge("waitreg_sweeper_interval_seconds", "Pause between sweeps (sweeper.interval_s)")
SWEEPER_LAST_SWEEP = _gauge(
    "waitreg_sweeper_last_sweep_timestamp_seconds", "End of the last sweep that was done or partial (epoch)"
)
SWEEPER_LAST_SUCCESS = _gauge(
    "waitreg_sweeper_last_success_timestamp_seconds", "End of the last sweep that skipped nothing (epoch)"
)
SWEEPER_DUE = _gauge("waitreg_sweeper_due", "Rows due when the last sweep started, unsendable ones included")
SWEEPER_OLDEST_DUE = _gauge("waitreg_sweeper_oldest_due_seconds", "How long the oldest due row has been due; 0 if none")
SWEEPER_ROWS = _counter(
    "waitreg_sweeper_rows_total",
    "Due rows by outcome: exported to their dead letter topic; redelivered; superseded by a later entry in the wait "
    "topic (settled, renewed or already exported; again at every sweep until the tables show it); unseen, without "
    "their wait record in the wait topic (again at every sweep until a rebuild); unsendable, since no topic takes them "
    "or they can't be read (again at every sweep until fixed)",
    outcome=("exported", "redelivered", "superseded", "unseen", "unsendable"),
)
SWEEPER_UNSENDABLE = _gauge("waitreg_sweeper_unsendable_rows", "Due rows that the last sweep found unsendable")
SWEEPER_SKIPPED = _counter(
    "waitreg_sweeper_partitions_skipped_total",
    "Partitions of the wait topic that a sweep skipped, by reason",
    reason=(
        "fenced",
        "open_transaction",
        "tail_too_long",
        "position_too_old",
        "topic_changed",
        "refused",
        "unavailable",
        "failed",
    ),
)
SWEEPER_STALENESS = _gauge(
    "waitreg_sweeper_tables_staleness_seconds",
    "Age of the tables (oldest partition) at the sweeper's last check, plus the time since",
)
SWEEPER_STALENESS_LIMIT = _gauge(
    "waitreg_sweeper_tables_staleness_limit_seconds",
    "The age from which nothing is exported until a rebuild: half of delete.retention.ms",
)
SWEEPER_CONNECT_SINK = _gauge(
    "waitreg_sweeper_connect_sink",
    "1 when a Kafka Connect sink keeps the tables (sink.kind=connect), so that no `waitreg sink` is expected",
)
SWEEPER_PURGED = _counter(
    "waitreg_sweeper_purged_rows_total",
    "Rows deleted because of their age, by table",
    table=("dead_letter", "quarantine", "late_outcome", "dead_letter_mark", "operation", "operator_event", "sweep"),
)
SWEEPER_POSTGRES_UP = _gauge("waitreg_sweeper_postgres_up", "1 when Postgres answered the last time it was asked")

# ---- dead letters and redrives, counted by the sweeper in the tables ------------------------------------------------

DEAD_LETTERS_OPEN = _gauge(
    "waitreg_dead_letters_open",
    "Dead letters that were neither redriven nor archived, by dead letter topic",
    consumer_group=OPEN,
    topic=OPEN,
    reason=OPEN,
)
DEAD_LETTER_OLDEST_OPEN = _gauge(
    "waitreg_dead_letter_oldest_open_seconds", "Age of the oldest open dead letter", consumer_group=OPEN, topic=OPEN
)
DEAD_LETTER_NEW_ERROR_CLASSES = _gauge(
    "waitreg_dead_letter_new_error_classes",
    "Error classes of the last hour's dead letters that no dead letter of the 7 days before had",
    consumer_group=OPEN,
    topic=OPEN,
)
DEAD_LETTERS_OF_NEW_ERROR_CLASSES = _gauge(
    "waitreg_dead_letters_of_new_error_classes",
    "Dead letters of the last hour with such an error class; 1,000 per class at most",
    consumer_group=OPEN,
    topic=OPEN,
)
DEAD_LETTERS_READ = _gauge(
    "waitreg_dead_letters_read_timestamp_seconds",
    "When the metrics of dead letters and redrives were last read from the tables (epoch); 0 before the first time",
)
REDRIVE_RECORDS = _gauge(
    "waitreg_redrive_records",
    "Dead letters by the category that redrives put them into, of jobs that changed within 24 hours",
    category=OPEN,
)
REDRIVE_OUTCOMES = _gauge(
    "waitreg_redrive_outcomes",
    "Records redriven within the last hour (the newest 10,000), by what became of them: waiting; a dead letter again; "
    "or other, which is done, discarded, in a retry topic or not consumed yet",
    consumer_group=OPEN,
    outcome=OPEN,
)
REDRIVE_JOBS = _gauge(
    "waitreg_redrive_jobs",
    "Jobs on dead letters, by state; finished and cancelled ones of the last 24 hours",
    state=("awaiting", "running", "paused", "cancelled", "finished"),
)
REDRIVE_LONGEST_SILENCE = _gauge(
    "waitreg_redrive_longest_silence_seconds",
    "How long the running job that is silent the longest has done nothing, as the tables show it; 0 if none runs",
)
OPERATIONS_STALENESS = _gauge(
    "waitreg_operations_tables_staleness_seconds",
    "Age of the tables that the sink keeps from the operations topic; missing before the first sink has run",
)

# ---- alerts by webhook, of a sweeper with alerts.rule ---------------------------------------------------------------

ALERTS_EVALUATED = _gauge(
    "waitreg_alerts_evaluated_timestamp_seconds",
    "When all rules of alerts.rule were last evaluated (epoch); 0 in a sweeper that leaves it to another one",
)
ALERTS_FIRING = _gauge("waitreg_alerts_firing", "1 while an alert of alerts.rule fires", rule=OPEN)
ALERTS_DELIVERIES = _counter(
    "waitreg_alerts_deliveries_total",
    "Messages that the receiver of alerts.webhook.url took, and attempts that failed",
    result=("delivered", "failed"),
)

# ---- connect (`waitreg connect watch`) ------------------------------------------------------------------------------

CONNECT_UP = _gauge("waitreg_connect_up", "1 while the Kafka Connect worker answers and is healthy")
CONNECT_RUNNING = _gauge(
    "waitreg_connect_running",
    "1 while a connector and all its tasks run; 0 if one doesn't, or the connector is missing",
    connector=OPEN,
)
CONNECT_TASKS = _gauge("waitreg_connect_tasks", "Tasks of a connector, by their state", connector=OPEN, state=OPEN)
CONNECT_SINK_LAG = _gauge(
    "waitreg_connect_sink_lag",
    "Offsets between a sink connector's committed offsets and the ends of its topics",
    connector=OPEN,
)
CONNECT_KEEPS_TABLES = _gauge(
    "waitreg_connect_keeps_tables",
    "1 if a Kafka Connect sink keeps the tables (sink.kind), so no sink of ours is expected",
)
CONNECT_EXPORTS = _gauge(
    "waitreg_connect_exports",
    "1 if a Kafka Connect source exports expired records (sweeper.kind), so no sweeper of ours is expected",
)
CONNECT_OLDEST_DUE = _gauge(
    "waitreg_connect_oldest_due_seconds",
    "How long the oldest expired registration has been due, by what it lacks: a dead letter in the tables, or its "
    "tombstone. 0 if none is due; only with sweeper.kind=connect, while Postgres answers",
    lacks=("dead_letter", "tombstone"),
)
CONNECT_POSTGRES_UP = _gauge(
    "waitreg_connect_postgres_up", "1 if Postgres answered the last query; only with sweeper.kind=connect"
)
CONNECT_RESTARTS = _counter(
    "waitreg_connect_restarts_total", "Restarts of a connector after it or one of its tasks failed", connector=OPEN
)
