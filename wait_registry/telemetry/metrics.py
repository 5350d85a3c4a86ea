"""Every metric of every service: the one place where names, kinds, labels and meanings are written down.

Names follow Prometheus' rules: base units in the name, counters end in ``_total``. Dashboards, alerts and
``docs/metrics.md`` are made from this file, so a name is a promise to those who watch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]

HANDLER_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
STEP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: ``labels`` in the order in which values are given, ``buckets`` (upper bounds) of a histogram."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def _counter(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "counter", help, labels)


def _gauge(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "gauge", help, labels)


def _histogram(name: str, help: str, buckets: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name, "histogram", help, labels, buckets)


# ---- processor ------------------------------------------------------------------------------------------------------

PROCESSOR_CONSUMED = _counter("waitreg_processor_consumed_total", "Records consumed from the input topics", "topic")
PROCESSOR_REGISTERED = _counter(
    "waitreg_processor_registered_total", "Wait records acknowledged by the broker, renewed ones not counted"
)
PROCESSOR_RENEWED = _counter(
    "waitreg_processor_renewed_total", "Records registered again because too little time was left to start them"
)
PROCESSOR_SETTLED = _counter(
    "waitreg_processor_settled_total",
    "Records whose tombstone is acknowledged, by outcome (done, dead_lettered, discarded, retried)",
    "outcome",
)
PROCESSOR_DEAD_LETTERS = _counter(
    "waitreg_processor_dead_letters_total",
    "Dead letters acknowledged, by reason (failed, unregistrable, ...)",
    "reason",
)
PROCESSOR_TRIES = _counter(
    "waitreg_processor_handler_tries_total", "Handler calls that ended, by result (ok, error, timeout)", "result"
)
PROCESSOR_HANDLER_SECONDS = _histogram(
    "waitreg_processor_handler_seconds",
    "From a record's first start to its outcome, tries and pauses included, by outcome",
    HANDLER_SECONDS,
    "outcome",
)
PROCESSOR_IN_FLIGHT = _gauge("waitreg_processor_in_flight", "Handlers that run now")
PROCESSOR_IN_FLIGHT_LIMIT = _gauge("waitreg_processor_in_flight_limit", "Handlers that may run at once (N)")
PROCESSOR_LOOK_AHEAD = _gauge("waitreg_processor_look_ahead", "Records registered (or on their way) and not finished")
PROCESSOR_LOOK_AHEAD_LIMIT = _gauge("waitreg_processor_look_ahead_limit", "Most records that may be so now")
PROCESSOR_LOOK_AHEAD_BYTES = _gauge(
    "waitreg_processor_look_ahead_bytes", "Keys, values and headers of the records in look-ahead"
)
PROCESSOR_UNACKNOWLEDGED = _gauge("waitreg_processor_unacknowledged", "Wait records sent and not yet acknowledged")
PROCESSOR_BLOCKED_SLOTS = _gauge(
    "waitreg_processor_blocked_slots", "Slots held by plain handlers that timed out and have not returned"
)
PROCESSOR_ASSIGNED = _gauge("waitreg_processor_assigned_partitions", "Input partitions assigned to this process")
PROCESSOR_PAUSED = _gauge("waitreg_processor_paused", "1 while consumption is paused because a limit is reached")
PROCESSOR_COMMIT_LAG = _gauge(
    "waitreg_processor_commit_lag",
    "Records consumed whose offset is not yet committed, per partition",
    "topic",
    "partition",
)
PROCESSOR_CONSUMER_LAG = _gauge(
    "waitreg_processor_consumer_lag",
    "Records between the position and the end of an input partition",
    "topic",
    "partition",
)
PROCESSOR_COMMITS = _counter("waitreg_processor_commits_total", "Offset commits, by result (ok, failed)", "result")
PROCESSOR_REBALANCES = _counter(
    "waitreg_processor_rebalances_total", "Rebalance callbacks, by kind (assigned, revoked, lost)", "kind"
)
PROCESSOR_BROKER_UP = _gauge("waitreg_processor_broker_up", "1 while the broker answers, 0 during an outage")
PROCESSOR_CLOCK_SKEW = _gauge(
    "waitreg_processor_clock_skew_seconds", "Broker's append time of a wait record against this host's clock"
)

# ---- sink -----------------------------------------------------------------------------------------------------------

SINK_RECORDS = _counter("waitreg_sink_records_total", "Records read, by stream (wait, dead_letter)", "stream")
SINK_BATCHES = _counter("waitreg_sink_batches_total", "Micro-batches committed to Postgres", "stream")
SINK_BATCH_SECONDS = _histogram(
    "waitreg_sink_batch_seconds", "From the start of a micro-batch to its commit in Postgres", STEP_SECONDS, "stream"
)
SINK_ROWS_WRITTEN = _counter("waitreg_sink_rows_written_total", "Rows inserted or replaced, by table", "table")
SINK_ROWS_DELETED = _counter("waitreg_sink_rows_deleted_total", "Rows of wait deleted by tombstones")
SINK_QUARANTINED = _counter("waitreg_sink_quarantined_total", "Records that couldn't be decoded", "stream")
SINK_LATE = _counter("waitreg_sink_finished_late_total", "Expired dead letters whose handler finished after all")
SINK_LAG = _gauge("waitreg_sink_lag", "Records between the sink's position and the log's end", "topic", "partition")
SINK_STALENESS = _gauge(
    "waitreg_sink_staleness_seconds",
    "Age of the view: now minus position_time, oldest partition of the topic",
    "topic",
)
SINK_RESTARTS = _counter("waitreg_sink_restarts_total", "Restarts of a broken query, by cause (error class)", "cause")
SINK_QUERY_UP = _gauge("waitreg_sink_query_up", "1 while the streaming query runs", "stream")
SINK_STANDBY = _gauge("waitreg_sink_standby", "1 while another sink holds the lock and this one waits")
SINK_POSTGRES_UP = _gauge("waitreg_sink_postgres_up", "1 while Postgres answers")

# ---- sweeper --------------------------------------------------------------------------------------------------------

SWEEPER_SWEEPS = _counter(
    "waitreg_sweeper_sweeps_total", "Sweeps, by result (done, partial, skipped, failed)", "result"
)
SWEEPER_SWEEP_SECONDS = _histogram("waitreg_sweeper_sweep_seconds", "Duration of a sweep", STEP_SECONDS)
SWEEPER_EXPORTED = _counter("waitreg_sweeper_exported_total", "Expired registrations sent to their dead letter topic")
SWEEPER_REDELIVERED = _counter("waitreg_sweeper_redelivered_total", "Expired registrations delivered again")
SWEEPER_SUPERSEDED = _counter(
    "waitreg_sweeper_superseded_total", "Due rows that a later entry in the wait topic had resolved or renewed"
)
SWEEPER_UNSEEN = _counter(
    "waitreg_sweeper_unseen_total", "Due rows whose own wait record is not in the wait topic: the view needs a rebuild"
)
SWEEPER_SET_ASIDE = _counter(
    "waitreg_sweeper_set_aside_total", "Due rows too large for their dead letter topic, without one, or unreadable"
)
SWEEPER_SKIPPED = _counter(
    "waitreg_sweeper_partitions_skipped_total",
    "Partitions of the wait topic that a sweep left out, by reason",
    "reason",
)
SWEEPER_DUE = _gauge("waitreg_sweeper_due", "Rows due when the last sweep looked")
SWEEPER_OLDEST_DUE = _gauge("waitreg_sweeper_oldest_due_seconds", "How long the oldest due row has been due; 0 if none")
SWEEPER_LAST_SUCCESS = _gauge(
    "waitreg_sweeper_last_success_timestamp_seconds", "End of the last sweep that left nothing out (epoch)"
)
SWEEPER_STALENESS = _gauge(
    "waitreg_sweeper_view_staleness_seconds", "Age of the view that the last sweep worked on, oldest partition"
)
SWEEPER_PURGED = _counter("waitreg_sweeper_purged_rows_total", "Rows deleted because of their age, by table", "table")
SWEEPER_POSTGRES_UP = _gauge("waitreg_sweeper_postgres_up", "1 when Postgres answered the last time it was asked")

# ---- all services ---------------------------------------------------------------------------------------------------

READY = _gauge("waitreg_ready", "1 while /health/ready says yes", "service")


def all_metrics() -> tuple[Metric, ...]:
    """Return every metric of this file, in its order."""
    return tuple(value for value in globals().values() if isinstance(value, Metric))
