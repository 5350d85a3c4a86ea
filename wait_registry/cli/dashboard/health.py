"""Row "Health": is anything wrong, and where."""

from __future__ import annotations

from typing import Final

from wait_registry.cli.dashboard.expressions import RATE_WINDOW, SCOPE, largest, series, smallest, summed, within
from wait_registry.cli.dashboard.page import Row
from wait_registry.cli.dashboard.panel import Panel, Query
from wait_registry.telemetry import metrics as m

_YES_NO: Final = ((0, "no", "red"), (1, "yes", "green"))

HEALTH: Final = Row(
    "Health",
    (
        Panel(
            "Alerts firing",
            "How many alerts of deploy/prometheus/alerts.yml fire now. Each has a section in docs/runbook.md.",
            (Query('count(ALERTS{alertname=~"Waitreg.+",alertstate="firing"}) or vector(0)', "alerts"),),
            width=3,
            single=True,
            steps=((1, "red"),),
        ),
        Panel(
            "Ready",
            "Whether at least one process of each service does its work. If not: its /health/ready lists the reasons.",
            (Query(largest(m.READY, "service"), "{{service}}"),),
            width=6,
            single=True,
            words=_YES_NO,
        ),
        Panel(
            "Processes that answer",
            "Scrapes that succeed, by job. Fewer than you started: one has ended (its last log line says why) or "
            "hangs.",
            (Query(f"sum by (job) (up{{{SCOPE}}})", "{{job}}"),),
            width=6,
            single=True,
        ),
        Panel(
            "Records that wait",
            "Input records not consumed yet, by group. When it grows: row Processor, are all slots in use?",
            (Query(summed(m.PROCESSOR_CONSUMER_LAG, "group"), "lag {{group}}"),),
            width=3,
            single=True,
        ),
        Panel(
            "Age of the view",
            "How old the rows in Postgres are. From 10 minutes on look at the sink: its log, its restarts, Postgres.",
            (Query(smallest(m.SINK_STALENESS, "topic"), "{{topic}}"),),
            unit="s",
            width=6,
            single=True,
            steps=((300, "orange"), (600, "red")),
        ),
        Panel(
            "Postgres answers",
            "Asked by sink and sweeper. Without it processors go on, the view grows old and nothing is exported.",
            (
                Query(smallest(m.SINK_POSTGRES_UP), "sink"),
                Query(smallest(m.SWEEPER_POSTGRES_UP), "sweeper"),
            ),
            width=4,
            single=True,
            words=_YES_NO,
        ),
        Panel(
            "Kafka answers",
            "Asked by the processors. Without it everything waits and nothing is lost.",
            (Query(smallest(m.PROCESSOR_BROKER_UP), "processors"),),
            width=4,
            single=True,
            words=_YES_NO,
        ),
        Panel(
            "Oldest due record",
            "How long an expired record has waited for its export. Above 15 minutes: row Sweeper, what is left out?",
            (Query(largest(m.SWEEPER_OLDEST_DUE), "oldest"),),
            unit="s",
            width=4,
            single=True,
            steps=((300, "orange"), (900, "red")),
        ),
        Panel(
            "Dead letters, 24 h",
            "By reason. `waitreg query dead_letters_by_reason` groups them by error.",
            (
                Query(within(m.PROCESSOR_DEAD_LETTERS, "24h", "reason"), "{{reason}}"),
                Query(within(m.SWEEPER_EXPORTED, "24h"), "expired"),
            ),
            width=8,
            single=True,
            steps=((1, "orange"),),
        ),
        Panel(
            "Versions",
            "How many processes run which version. Two for long: a rollout that has not ended.",
            (Query(f"count by (version) ({series(m.BUILD_INFO)})", "{{version}}"),),
            width=4,
            single=True,
        ),
        Panel(
            "Time since start",
            "A saw of short teeth is a process that ends again and again; the last lines of its log say why.",
            (Query(f"time() - process_start_time_seconds{{{SCOPE}}}", "{{job}} {{instance}}"),),
            unit="s",
        ),
        Panel(
            "CPU",
            "Cores used by each Python process; sink and sweeper have a JVM beside it, which isn't in it. A processor "
            "at 1 is at its limit: start another of the group.",
            (Query(f"rate(process_cpu_seconds_total{{{SCOPE}}}[{RATE_WINDOW}])", "{{job}} {{instance}}"),),
        ),
        Panel(
            "Memory",
            "Resident memory of each Python process, without the JVM of sink and sweeper. A processor's is bounded by "
            "processor.look_ahead_max_bytes and what the handler holds.",
            (Query(f"process_resident_memory_bytes{{{SCOPE}}}", "{{job}} {{instance}}"),),
            unit="bytes",
        ),
    ),
)
