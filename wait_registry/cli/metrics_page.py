"""docs/metrics-reference.md, generated: `waitreg metrics --markdown > docs/metrics-reference.md`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wait_registry.telemetry.metrics import Metric, all_metrics

_HEAD: Final = """\
# Metrics reference

<!-- Generated: `waitreg metrics --markdown > docs/metrics-reference.md`. Edit wait_registry/telemetry/metrics.py. -->

A series whose label values are listed exists from the start, with 0, so that `rate()` and `increase()` see the first
event. *Any* means that topics, partitions or settings bound the values. [metrics.md](metrics.md) says how to read them.
"""
_TITLES: Final = {
    "": "All services",
    "processor": "Processor",
    "sink": "Sink",
    "sweeper": "Sweeper",
    "connect": "Kafka Connect (`waitreg connect watch`)",
}


def metrics_page() -> str:
    """Return the whole page."""
    sections = [
        f"## {title}\n\n{_table([metric for metric in all_metrics() if metric.service == service])}"
        for service, title in _TITLES.items()
    ]
    return "\n".join([_HEAD, *sections])


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
