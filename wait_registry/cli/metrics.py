"""`waitreg metrics`."""

from __future__ import annotations

import click

from wait_registry.cli.command import Command, Invocation


@click.command("metrics", cls=Command, examples=("waitreg metrics",), exit_codes=(0, 2))
@click.option("--markdown", is_flag=True, help="Print the list as docs/metrics-reference.md.")
@click.pass_obj
def command(_: Invocation, markdown: bool) -> int:
    """List all metrics.

    Lists the metrics that the services serve at /metrics of their telemetry ports, with kind, labels and meaning.
    """
    if markdown:
        from wait_registry.cli.metrics_page import metrics_page

        print(metrics_page(), end="")
    else:
        _print_list()
    return 0


def _print_list() -> None:
    from wait_registry.telemetry.metrics import all_metrics

    for metric in all_metrics():
        labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
        print(f"{metric.name}{labels} ({metric.kind})")
        print(f"    {metric.help}")
