"""All metrics of the services, and which service exposes each."""

from __future__ import annotations

from typing import Final

from wait_registry.telemetry import metrics
from wait_registry.telemetry.metrics import Metric

ALL_METRICS: Final = tuple(value for value in vars(metrics).values() if isinstance(value, Metric))
# By the second part of a metric's name. What the sweeper counts in the tables is named after what is counted.
_SERVICES: Final = {
    **{service: service for service in ("processor", "sink", "sweeper", "connect")},
    **dict.fromkeys(("dead", "redrive", "operations", "alerts"), "sweeper"),
}


def service_of(metric: Metric) -> str:
    """Return the service that exposes a metric; empty if all do."""
    return _SERVICES.get(metric.name.split("_")[1], "")
