"""Fixtures of the fault tests: what other tests make, and wait topics, links and clusters of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.several_scenarios import another_scenario
from tests.integration.processor.conftest import processor_settings, processors
from tests.integration.sink.conftest import start_sink
from tests.integration.sweeper.conftest import scenario
from tests.support.cluster import EmbeddedCluster

__all__ = ["another_scenario", "processor_settings", "processors", "scenario", "start_sink"]


@pytest.fixture(scope="module")
def three_brokers() -> Iterator[EmbeddedCluster]:
    """A cluster, started when the first test wants to break it."""
    with EmbeddedCluster() as running:
        yield running


@pytest.fixture
def cluster(three_brokers: EmbeddedCluster) -> EmbeddedCluster:
    """The cluster, all of it running; what a test has broken is fixed before the next one."""
    three_brokers.start(three_brokers.brokers)
    return three_brokers
