"""PromQL over the metrics of this system, narrowed to the jobs, groups and instances chosen in the dashboard."""

from __future__ import annotations

from typing import Final

from wait_registry.telemetry.metrics import Metric

# Sinks and sweepers have no group, nor have processors whose targets carry no such label: an empty one always matches.
SCOPE: Final = 'job=~"$job",group=~"$group|",instance=~"$instance"'
# Grafana's own: at least four scrapes, so that no point falls between two of them.
RATE_WINDOW: Final = "$__rate_interval"


def series(metric: Metric, *matchers: str, suffix: str = "") -> str:
    """Return a metric's series, ``matchers`` (``reason="failed"``) narrowing them further."""
    return f"{metric.name}{suffix}{{{','.join((SCOPE, *matchers))}}}"


def summed(metric: Metric, by: str = "") -> str:
    """Return a gauge's sum over all series, or for each value of the labels ``by``."""
    return f"sum{_by(by)}({series(metric)})"


def largest(metric: Metric, by: str = "") -> str:
    """Return a gauge's largest value."""
    return f"max{_by(by)}({series(metric)})"


def smallest(metric: Metric, by: str = "") -> str:
    """Return a gauge's smallest value."""
    return f"min{_by(by)}({series(metric)})"


def per_second(metric: Metric, by: str = "", *matchers: str) -> str:
    """Return a counter's rate, a second."""
    return f"sum{_by(by)}(rate({series(metric, *matchers)}[{RATE_WINDOW}]))"


def within(metric: Metric, window: str, by: str = "", *matchers: str) -> str:
    """Return by how much a counter grew within a window (``1h``)."""
    return f"sum{_by(by)}(increase({series(metric, *matchers)}[{window}]))"


def quantile(share: float, metric: Metric, by: str = "", *matchers: str) -> str:
    """Return what ``share`` of a histogram's observations stay below."""
    labels = f"le, {by}" if by else "le"
    rates = f"rate({series(metric, *matchers, suffix='_bucket')}[{RATE_WINDOW}])"
    return f"histogram_quantile({share:g}, sum by ({labels}) ({rates}))"


def _by(labels: str) -> str:
    return f" by ({labels}) " if labels else ""
