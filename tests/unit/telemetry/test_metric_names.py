"""The one file of metric names keeps Prometheus' conventions, so that dashboards can rely on them."""

from __future__ import annotations

import re

import pytest

from wait_registry.telemetry.exposition import MetricsRegistry
from wait_registry.telemetry.metrics import Metric, all_metrics

METRICS = all_metrics()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_keeps_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"waitreg_((processor|sink|sweeper|connect)_)?[a-z]+(_[a-z]+)*", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    assert (metric.kind == "histogram") == bool(metric.buckets)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert metric.help
    assert not metric.help.endswith(".")


def test_names_are_unique() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)


def test_every_metric_can_be_registered_in_one_process() -> None:
    registry = MetricsRegistry()
    for metric in METRICS:
        getattr(registry, metric.kind)(metric)
    text = registry.expose().decode()
    for metric in METRICS:
        assert f"# HELP {metric.name} {metric.help}\n" in text
