"""The metrics of a service in the Prometheus format, and their names."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from wait_registry.telemetry.exposition import HistogramReading, MetricsRegistry, Reading, Readings
from wait_registry.telemetry.metrics import BUILD_INFO, Metric, all_metrics

COUNTER = Metric("waitreg_test_records_total", "counter", "Records", ("topic",))
GAUGE = Metric("waitreg_test_depth", "gauge", "Depth")
HISTOGRAM = Metric("waitreg_test_seconds", "histogram", "Seconds", ("outcome",), (0.1, 1.0))


def samples(registry: MetricsRegistry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    families = text_string_to_metric_families(registry.expose().decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_instruments_count() -> None:
    registry = MetricsRegistry()
    registry.counter(COUNTER).labels("orders").inc(2)
    registry.gauge(GAUGE).set(5)
    registry.histogram(HISTOGRAM).labels("done").observe(0.5)
    seen = samples(registry)
    assert seen["waitreg_test_records_total", (("topic", "orders"),)] == 2
    assert seen["waitreg_test_depth", ()] == 5
    assert seen["waitreg_test_seconds_bucket", (("le", "0.1"), ("outcome", "done"))] == 0
    assert seen["waitreg_test_seconds_bucket", (("le", "1.0"), ("outcome", "done"))] == 1


def test_plain_numbers_are_read_at_every_scrape() -> None:
    counts = {"orders": 1, "refunds": 7}

    def read() -> Readings:
        yield from (Reading(COUNTER, count, (topic,)) for topic, count in counts.items())
        yield Reading(GAUGE, 3)

    registry = MetricsRegistry()
    registry.collect_from(read)
    assert samples(registry)["waitreg_test_records_total", (("topic", "orders"),)] == 1
    counts["orders"] = 2
    seen = samples(registry)
    assert seen["waitreg_test_records_total", (("topic", "orders"),)] == 2
    assert seen["waitreg_test_records_total", (("topic", "refunds"),)] == 7
    assert seen["waitreg_test_depth", ()] == 3


def test_a_histogram_is_read_from_counts_per_bucket() -> None:
    registry = MetricsRegistry()
    registry.collect_from(lambda: [HistogramReading(HISTOGRAM, (4, 2, 1), 9.5, ("done",))])
    seen = samples(registry)
    labels = (("outcome", "done"),)
    assert seen["waitreg_test_seconds_bucket", (("le", "0.1"), *labels)] == 4
    assert seen["waitreg_test_seconds_bucket", (("le", "1.0"), *labels)] == 6
    assert seen["waitreg_test_seconds_bucket", (("le", "+Inf"), *labels)] == 7
    assert seen["waitreg_test_seconds_count", labels] == 7
    assert seen["waitreg_test_seconds_sum", labels] == 9.5


def test_a_wrong_number_of_buckets_is_refused() -> None:
    registry = MetricsRegistry()
    registry.collect_from(lambda: [HistogramReading(HISTOGRAM, (1, 2), 1.0, ("done",))])
    with pytest.raises(ValueError, match="waitreg_test_seconds has 3 buckets, not 2"):
        registry.expose()


METRICS = all_metrics()


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_keeps_the_conventions(metric: Metric) -> None:
    assert re.fullmatch(r"waitreg_((processor|sink|sweeper|connect)_)?[a-z]+(_[a-z]+)*", metric.name)
    assert (metric.kind == "counter") == metric.name.endswith("_total")
    assert (metric.kind == "histogram") == bool(metric.buckets)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    assert metric.help
    assert not metric.help.endswith(".")


def test_every_metric_can_be_registered_in_one_process() -> None:
    registry = MetricsRegistry()
    for metric in METRICS:
        if metric is not BUILD_INFO:  # every registry has it
            getattr(registry, metric.kind)(metric)
    text = registry.expose().decode()
    assert "# HELP python_info " in text, "the process itself is measured too"
    for metric in METRICS:
        assert f"# HELP {metric.name} {metric.help}\n" in text
