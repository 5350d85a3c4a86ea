"""`waitreg metrics`; with --markdown it prints the tables of docs/metrics-reference.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from wait_registry.cli.command import Command, Invocation
from wait_registry.telemetry.metrics import Metric, all_metrics

_TITLES: Final = {
    "": "All services",
    "processor": "Processor",
    "sink": "Sink",
    "sweeper": "Sweeper",
    "connect": "Kafka Connect (`waitreg connect watch`)",
}


@click.command("metrics", cls=Command, examples=("waitreg metrics",), exit_codes=(0, 2))
@click.option("--markdown", is_flag=True, help="Print the list as the tables of docs/metrics-reference.md.")
@click.pass_obj
def command(_: Invocation, markdown: bool) -> int:
    """List all metrics.

    Lists the metrics that the services serve at /metrics of their telemetry ports, with kind, labels and meaning.
    """
    if markdown:
        print(metrics_tables(), end="")
        return 0
    for metric in all_metrics():
        labels = f"{{{','.join(metric.labels)}}}" if metric.labels else ""
        print(f"{metric.name}{labels} ({metric.kind})")
        print(f"    {metric.help}")
    return 0


def metrics_tables() -> str:
    """Return the tables of the page, a section for each service."""
    sections = [
        f"## {title}\n\n{_table([metric for metric in all_metrics() if metric.service == service])}"
        for service, title in _TITLES.items()
    ]
    return "\n".join(sections)


def _table(metrics: Sequence[Metric]) -> str:
    rows = "\n".join(_row(f"`{m.name}`", m.kind, _labels(m), m.help) for m in metrics)
    return f"| metric | kind | labels | meaning |\n|---|---|---|---|\n{rows}\n"


def _labels(metric: Metric) -> str:
    if not metric.known:
        return ", ".join(f"`{label}`: any" for label in metric.labels)
    values = zip(*metric.known, strict=True)
    return "; ".join(
        f"`{label}`: {', '.join(dict.fromkeys(found))}" for label, found in zip(metric.labels, values, strict=True)
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
