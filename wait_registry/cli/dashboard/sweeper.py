"""Row "Sweeper": what expires, and what becomes of it."""

from __future__ import annotations

from typing import Final

from wait_registry.cli.dashboard.expressions import largest, quantile, within
from wait_registry.cli.dashboard.page import Row
from wait_registry.cli.dashboard.panel import Panel, Query
from wait_registry.telemetry import metrics as m

SWEEPER: Final = Row(
    "Sweeper",
    (
        Panel(
            "Due rows",
            "Expired registrations at the last look, and those among them that can't be exported (the log names each "
            "with the way out). Due rows that stay: see what is left out.",
            (
                Query(largest(m.SWEEPER_DUE), "due"),
                Query(largest(m.SWEEPER_ROWS_SET_ASIDE), "set aside"),
            ),
        ),
        Panel(
            "Oldest due row",
            "For how long it has been due. A sweep every sweeper.interval_s keeps it near that.",
            (Query(largest(m.SWEEPER_OLDEST_DUE), "oldest"),),
            unit="s",
            steps=((900, "red"),),
        ),
        Panel(
            "Since the last sweep",
            "Since one looked for due rows, and since one left nothing out. Alerts three pauses and 5 minutes after.",
            (
                Query(f"time() - ({largest(m.SWEEPER_LAST_SWEEP)} > 0)", "done or partial"),
                Query(f"time() - ({largest(m.SWEEPER_LAST_SUCCESS)} > 0)", "done"),
                Query(largest(m.SWEEPER_INTERVAL), "pause between sweeps"),
            ),
            unit="s",
        ),
        Panel(
            "What became of due rows, per hour",
            "Exported: dead letters. Redelivered: the group's policy. Superseded: finished, renewed or already "
            "exported, the sink is behind. Unseen: the view needs a rebuild.",
            (
                Query(within(m.SWEEPER_EXPORTED, "1h"), "exported"),
                Query(within(m.SWEEPER_REDELIVERED, "1h"), "redelivered"),
                Query(within(m.SWEEPER_SUPERSEDED, "1h"), "superseded"),
                Query(within(m.SWEEPER_UNSEEN, "1h"), "unseen"),
                Query(within(m.SWEEPER_SET_ASIDE, "1h"), "set aside"),
            ),
        ),
        Panel(
            "Partitions left out, per hour",
            "By reason; the next sweep tries again. open_transaction and unavailable pass, tail_too_long waits for the "
            "sink, position_too_old for a rebuild.",
            (Query(within(m.SWEEPER_SKIPPED, "1h", "reason"), "{{reason}}"),),
            stacked=True,
        ),
        Panel(
            "Sweeps in an hour",
            "By result. Skipped: another sweeper was at it. Failed: Postgres or Kafka was away.",
            (Query(within(m.SWEEPER_SWEEPS, "1h", "result"), "{{result}}"),),
            stacked=True,
        ),
        Panel(
            "Time of a sweep, 95 % below",
            "Milliseconds when nothing is due, seconds when Spark runs.",
            (Query(quantile(0.95, m.SWEEPER_SWEEP_SECONDS), "95 % below"),),
            unit="s",
        ),
        Panel(
            "Age of the view that was swept",
            "What the sweeper last saw, plus the time since. High while the sink is well: another schema or wait "
            "topic. Unknown, and 1 for it, where a Kafka Connect sink keeps the view.",
            (
                Query(largest(m.SWEEPER_CONNECT_SINK), "kept by Kafka Connect"),
                Query(largest(m.SWEEPER_STALENESS), "age"),
                Query(largest(m.SWEEPER_STALENESS_LIMIT), "refused from here on"),
            ),
            unit="s",
        ),
        Panel(
            "Rows purged in a day",
            "By table, because of sweeper.retention_days.",
            (Query(within(m.SWEEPER_PURGED, "24h", "table"), "{{table}}"),),
        ),
    ),
)
