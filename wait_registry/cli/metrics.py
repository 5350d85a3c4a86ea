"""`waitreg metrics`."""

from __future__ import annotations

import click

from wait_registry.cli.command import Command, Invocation


@click.command("metrics", cls=Command, examples=("waitreg metrics", "waitreg metrics --dashboard"), exit_codes=(0, 2))
@click.option("--markdown", "form", flag_value="markdown", help="Print the list as docs/metrics.md.")
@click.option(
    "--dashboard", "form", flag_value="dashboard", help="Print the Grafana dashboard, deploy/grafana/waitreg.json."
)
@click.pass_obj
def command(_: Invocation, form: str | None) -> int:
    """List all metrics, or print the Grafana dashboard.

    Lists the metrics that the services expose at /metrics of their telemetry ports, with kind, labels and meaning.
    `--dashboard` prints a dashboard to import into Grafana. The alert rules are in deploy/prometheus/alerts.yml.
    """
    if form == "markdown":
        from wait_registry.cli.metrics_page import metrics_page

        print(metrics_page(), end="")
    elif form == "dashboard":
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
