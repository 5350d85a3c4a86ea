"""Row "Registry": the wait topic's view in Postgres, and what keeps it."""

from __future__ import annotations

from typing import Final

from wait_registry.cli.dashboard.expressions import largest, per_second, quantile, series, smallest, summed, within
from wait_registry.cli.dashboard.page import Row
from wait_registry.cli.dashboard.panel import Panel, Query
from wait_registry.telemetry import metrics as m

REGISTRY: Final = Row(
    "Registry: wait topic, sink, Postgres",
    (
        Panel(
            "Records behind the log",
            "Of the wait topic and the dead letter topics, when the sink last committed. Growing while batches are "
            "committed: it is too slow, see the time of a batch.",
            (Query(summed(m.SINK_LAG, "topic"), "{{topic}}"),),
        ),
        Panel(
            "Age of the view",
            "An idle sink renews it every sink.idle_progress_s. Rising as fast as time: nothing is committed.",
            (Query(smallest(m.SINK_STALENESS, "topic"), "{{topic}}"),),
            unit="s",
            steps=((600, "red"),),
        ),
        Panel(
            "Share of the age that it may have",
            "At 100 % (half of delete.retention.ms) only `waitreg rebuild` helps. The sweeper's own look counts when "
            "no sink is left to tell.",
            (
                Query(
                    f"min by (topic) ({series(m.SINK_STALENESS)} / {series(m.SINK_STALENESS_LIMIT)})", "sink: {{topic}}"
                ),
                Query(f"min({series(m.SWEEPER_STALENESS)} / {series(m.SWEEPER_STALENESS_LIMIT)})", "sweeper"),
            ),
            unit="percentunit",
            steps=((0.5, "orange"), (1, "red")),
        ),
        Panel(
            "Records read a second",
            "By stream. A record that is registered and finished within a batch is read and never written.",
            (Query(per_second(m.SINK_RECORDS, "stream"), "{{stream}}"),),
            unit="reqps",
        ),
        Panel(
            "Rows a second",
            "Written by table, and rows of wait deleted by tombstones. Rows written and not deleted are what is open.",
            (
                Query(per_second(m.SINK_ROWS_WRITTEN, "table"), "{{table}} written"),
                Query(per_second(m.SINK_ROWS_DELETED), "wait deleted"),
            ),
            unit="reqps",
        ),
        Panel(
            "Time of a batch, 95 % below",
            "From its start to the commit in Postgres; above sink.trigger_s batches follow one another without a "
            "pause.",
            (Query(quantile(0.95, m.SINK_BATCH_SECONDS, "stream"), "{{stream}}"),),
            unit="s",
        ),
        Panel(
            "Batches a second",
            "Committed micro-batches. None while records wait: the query is down or Postgres is away.",
            (Query(per_second(m.SINK_BATCHES, "stream"), "{{stream}}"),),
            unit="reqps",
        ),
        Panel(
            "Streams that run, sinks that stand by",
            "Each stream runs in one sink; a second sink stands by. A stream at 0: its log names what broke it.",
            (
                Query(largest(m.SINK_QUERY_UP, "stream"), "{{stream}}"),
                Query(summed(m.SINK_STANDBY), "standing by"),
            ),
        ),
        Panel(
            "Restarts in an hour",
            "Of broken streams, by cause. Postgres and kafka mend themselves; other is worth a bug report with the "
            "log.",
            (Query(within(m.SINK_RESTARTS, "1h", "cause"), "{{cause}}"),),
            stacked=True,
        ),
    ),
)
