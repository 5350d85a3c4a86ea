"""Row "Kafka Connect": connectors in the sink's or the sweeper's place; empty without `waitreg connect watch`."""

from __future__ import annotations

from typing import Final

from wait_registry.cli.dashboard.expressions import largest, smallest, summed, within
from wait_registry.cli.dashboard.page import Row
from wait_registry.cli.dashboard.panel import Panel, Query
from wait_registry.telemetry import metrics as m

_YES_NO: Final = ((0, "no", "red"), (1, "yes", "green"))

CONNECT: Final = Row(
    "Kafka Connect",
    (
        Panel(
            "Workers answer",
            "Asked by `waitreg connect watch`. While they don't, nothing is known of their connectors.",
            (Query(smallest(m.CONNECT_UP), "workers"),),
            width=4,
            single=True,
            words=_YES_NO,
        ),
        Panel(
            "Connectors that run",
            "With all their tasks. If not: `waitreg connect status` says why; a paused one doesn't run either.",
            (Query(smallest(m.CONNECT_RUNNING, "connector"), "{{connector}}"),),
            width=12,
            single=True,
            words=_YES_NO,
        ),
        Panel(
            "Restarts don't help",
            "Connectors that fail as often as they are restarted; the watcher's log has the cause.",
            (Query(largest(m.CONNECT_RESTART_LIMIT_REACHED, "connector"), "{{connector}}"),),
            width=8,
            single=True,
            steps=((1, "red"),),
        ),
        Panel(
            "Tasks by state",
            "All running when well. Unassigned for long: a worker is gone, and the others wait for its return.",
            (Query(f"{summed(m.CONNECT_TASKS, 'connector, state')} > 0", "{{connector}} {{state}}"),),
            stacked=True,
        ),
        Panel(
            "Lag of sink connectors",
            "Offsets not yet committed. When it grows: is Postgres slow, or the task failed?",
            (Query(largest(m.CONNECT_SINK_LAG, "connector"), "{{connector}}"),),
        ),
        Panel(
            "Oldest expired registration, s",
            "Where a source exports. Without dead letter: is it expired.source? Without tombstone: expired.tombstones?",
            (Query(largest(m.CONNECT_OLDEST_DUE, "lacks"), "without {{lacks}}"),),
            unit="s",
        ),
        Panel(
            "In place of ours",
            "Whether Kafka Connect keeps the view and exports, by the settings; whether Postgres answers the watcher.",
            (
                Query(largest(m.CONNECT_KEEPS_VIEW), "keeps the view"),
                Query(largest(m.CONNECT_EXPORTS), "exports"),
                Query(smallest(m.CONNECT_POSTGRES_UP), "Postgres"),
            ),
        ),
        Panel(
            "Restarts, per hour",
            "Of failed connectors and tasks, by the watcher. A few after each outage of Postgres.",
            (Query(within(m.CONNECT_RESTARTS, "1h", "connector"), "{{connector}}"),),
            stacked=True,
        ),
    ),
)
