"""docs/metrics.md, made from the metrics: `waitreg metrics --markdown > docs/metrics.md`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from wait_registry.cli.metric_questions import QUESTIONS, Question
from wait_registry.telemetry.metrics import Metric, all_metrics

_HEAD: Final = """\
# Metrics

<!-- Generated: `waitreg metrics --markdown > docs/metrics.md`. Edit wait_registry/telemetry/metrics.py. -->

Every service answers on its telemetry port (`telemetry.host`, `telemetry.port`; on loopback unless you say otherwise):
`/metrics` for Prometheus, `/health/live` (leave it running?) and `/health/ready` (does it do its work? 503 with the
reasons if not).

- `deploy/prometheus/prometheus.yml` is a configuration to start from. The jobs' names, `waitreg-processor`,
  `waitreg-sink` and `waitreg-sweeper` (and `waitreg-connect`, where there is one), are what the rules ask for.
- `deploy/prometheus/alerts.yml` has the alert rules, `severity: page` or `ticket`, each with its section in
  [runbook.md](runbook.md). `promtool test rules deploy/prometheus/tests/*.yml` shows on which series each fires.
- `deploy/grafana/waitreg.json` is a dashboard to import (Grafana 10.4 or newer); `waitreg metrics --dashboard` prints
  the one of the version that is installed.

A series with a label whose values are listed below is there from the start, with 0, so that `rate()` and `increase()`
see the first event. Where a label says *any*, its values are bounded by what it names: topics, partitions, settings.
"""
_PROCESS: Final = """\
## The process itself

Each service also exposes the usual metrics of a Python process on Linux: `process_start_time_seconds`,
`process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_open_fds`, `python_info`, `python_gc_*`. Sink and
sweeper run Spark in a JVM of their own beside them, which these don't include: watch the container or the host for it
(about `spark.driver_memory` and 350 MB).
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
    parts = [_HEAD]
    for service, title in _TITLES.items():
        parts.append(f"## {title}\n")
        parts.append(_questions(QUESTIONS[service]))
        parts.append(_table([metric for metric in all_metrics() if metric.service == service]))
    parts.append(_PROCESS)
    return "\n".join(parts)


def _questions(questions: Sequence[Question]) -> str:
    rows = "\n".join(
        _row(question.asked, ", ".join(f"`{metric.name}`" for metric in question.metrics), question.look)
        for question in questions
    )
    return f"| when you ask | look at | and see |\n|---|---|---|\n{rows}\n"


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
