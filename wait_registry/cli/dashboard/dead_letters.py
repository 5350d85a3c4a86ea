"""Row "Dead letters": what was given up, why, and what could not be read."""

from __future__ import annotations

from typing import Final

from wait_registry.cli.dashboard.expressions import per_second, within
from wait_registry.cli.dashboard.page import Row
from wait_registry.cli.dashboard.panel import Panel, Query
from wait_registry.telemetry import metrics as m

_GIVEN_UP: Final = per_second(m.PROCESSOR_SETTLED, "", 'outcome="dead_lettered"')

DEAD_LETTERS: Final = Row(
    "Dead letters",
    (
        Panel(
            "Dead letters a second",
            "By reason: failed (the handler gave up), unregistrable (too large), malformed (can't be read whole), "
            "expired (its process died). `waitreg query LIST` shows the questions that Postgres answers about them.",
            (
                Query(per_second(m.PROCESSOR_DEAD_LETTERS, "reason"), "{{reason}}"),
                Query(per_second(m.SWEEPER_EXPORTED), "expired"),
            ),
            unit="reqps",
            stacked=True,
        ),
        Panel(
            "Dead letters in an hour",
            "The same, counted.",
            (
                Query(within(m.PROCESSOR_DEAD_LETTERS, "1h", "reason"), "{{reason}}"),
                Query(within(m.SWEEPER_EXPORTED, "1h"), "expired"),
            ),
            stacked=True,
        ),
        Panel(
            "Share of records dead-lettered",
            "Of all that were settled. A step: look at the newest deployment, of the handler or of what it calls.",
            (Query(f"{_GIVEN_UP} / {per_second(m.PROCESSOR_SETTLED)}", "share"),),
            unit="percentunit",
        ),
        Panel(
            "Quarantined in an hour",
            "Records of the wait topic or a dead letter topic that can't be decoded: somebody else writes there. They "
            "stand in the table quarantine with the reason.",
            (Query(within(m.SINK_QUARANTINED, "1h", "stream"), "{{stream}}"),),
        ),
        Panel(
            "Expired and finished all the same, in a day",
            "A processor was frozen for longer than processor.margin_s, or a clock is wrong. Consumers of the dead "
            "letter topic deduplicate by WAIT_EXPIRATION_UUID; the rows are marked finished_late.",
            (Query(within(m.SINK_LATE, "24h"), "finished late"),),
        ),
    ),
)
