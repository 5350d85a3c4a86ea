"""`waitreg metrics`."""

from __future__ import annotations

import argparse
from typing import Final

from wait_registry.cli.command import Command, Invocation


def _configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--markdown", action="store_true", help="the same list as docs/metrics.md")
    what.add_argument("--dashboard", action="store_true", help="the Grafana dashboard, deploy/grafana/waitreg.json")


def _run(invocation: Invocation) -> int:
    if invocation.arguments.markdown:
        from wait_registry.cli.metrics_page import metrics_page

        print(metrics_page(), end="")
    elif invocation.arguments.dashboard:
        from wait_registry.cli.dashboard.page import dashboard_json
        from wait_registry.cli.dashboard.rows import ROWS

        print(dashboard_json(ROWS), end="")
    else:
        _print_list()
    return 0


def _print_list() -> None:
    from wait_registry.telemetry.metrics import all_metrics

    for metric in all_metrics():
        labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
        print(f"{metric.name}{labels} ({metric.kind})")
        print(f"    {metric.help}")


COMMAND: Final = Command(
    name="metrics",
    group="setting up",
    summary="list every metric there is, or print the Grafana dashboard",
    description="""\
Lists the metrics that the services expose on /metrics of their telemetry ports, with kind, labels and meaning.
`--dashboard` prints a dashboard to import into Grafana; alert rules stand in deploy/prometheus/alerts.yml.""",
    examples=("waitreg metrics", "waitreg metrics --dashboard"),
    run=_run,
    configure=_configure,
    exit_codes=(0, 2),
)
