"""The metrics of one service in the Prometheus exposition format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from wait_registry.telemetry.metrics import BUILD_INFO, Metric

Instrument = TypeVar("Instrument", Counter, Gauge, Histogram)


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of a counter or gauge at scrape time; ``labels`` in the order of the metric's label names."""

    metric: Metric
    value: float
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HistogramReading:
    """A histogram at scrape time: observations per bucket (not cumulative, one more than the metric's bounds)."""

    metric: Metric
    counts: tuple[int, ...]
    total: float
    labels: tuple[str, ...] = ()


Readings = Iterable[Reading | HistogramReading]


class MetricsRegistry:
    """All metrics of one service, with those of its process; several may live in one process (tests)."""

    def __init__(self) -> None:
        self.prometheus = CollectorRegistry()
        ProcessCollector(registry=self.prometheus)
        PlatformCollector(registry=self.prometheus)
        GCCollector(registry=self.prometheus)
        self.gauge(BUILD_INFO).labels(version("wait-registry")).set(1)

    def counter(self, metric: Metric) -> Counter:
        """Create the counter of this definition; a second one is refused."""
        return _labelled(Counter(metric.name, metric.help, metric.labels, registry=self.prometheus), metric)

    def gauge(self, metric: Metric) -> Gauge:
        """Create the gauge of this definition; a second one is refused."""
        return _labelled(Gauge(metric.name, metric.help, metric.labels, registry=self.prometheus), metric)

    def histogram(self, metric: Metric) -> Histogram:
        """Create the histogram of this definition; a second one is refused."""
        made = Histogram(metric.name, metric.help, metric.labels, registry=self.prometheus, buckets=metric.buckets)
        return _labelled(made, metric)

    def collect_from(self, read: Callable[[], Readings]) -> None:
        """Call ``read`` at every scrape, for numbers that a hot loop keeps as plain integers.

        Args:
            read: called in the scraping thread; returns one reading per metric and label values.
        """
        self.prometheus.register(_Reader(read))

    def expose(self) -> bytes:
        """Render all metrics as text (Prometheus' format 0.0.4)."""
        return generate_latest(self.prometheus)


def _labelled(instrument: Instrument, metric: Metric) -> Instrument:
    for values in metric.known:
        instrument.labels(*values)
    return instrument


class _Reader(Collector):
    """Turns readings into Prometheus families, one per metric."""

    def __init__(self, read: Callable[[], Readings]) -> None:
        self._read = read

    def describe(self) -> Iterator[Family]:
        # Otherwise registering would call `read` before the service is ready.
        return iter(())

    def collect(self) -> Iterator[Family]:
        families: dict[str, Family] = {}
        for reading in self._read():
            family = families.get(reading.metric.name)
            if family is None:
                family = families[reading.metric.name] = _family(reading.metric)
            _add(family, reading)
        return iter(families.values())


def _family(metric: Metric) -> Family:
    kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily}
    family: Family = kinds[metric.kind](metric.name, metric.help, labels=metric.labels)
    return family


def _add(family: Family, reading: Reading | HistogramReading) -> None:
    if isinstance(reading, HistogramReading):
        assert isinstance(family, HistogramMetricFamily)
        family.add_metric(reading.labels, _cumulative(reading), reading.total)
        return
    assert isinstance(family, (CounterMetricFamily, GaugeMetricFamily))
    family.add_metric(reading.labels, reading.value)


def _cumulative(reading: HistogramReading) -> list[tuple[str, float]]:
    bounds = [*(str(float(bound)) for bound in reading.metric.buckets), "+Inf"]
    if len(reading.counts) != len(bounds):
        raise ValueError(f"{reading.metric.name} has {len(bounds)} buckets, not {len(reading.counts)}")
    seen, cumulative = 0, []
    for bound, count in zip(bounds, reading.counts, strict=True):
        seen += count
        cumulative.append((bound, float(seen)))
    return cumulative
