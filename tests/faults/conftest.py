"""Fixtures of the fault tests: what other tests make, and a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faults.cluster import EmbeddedCluster, running_cluster
from tests.integration.processor.conftest import processor_settings, processors
from tests.integration.sink.conftest import sink_scenario, start_sink
from tests.integration.sweeper.conftest import scenario

__all__ = ["processor_settings", "processors", "scenario", "sink_scenario", "start_sink"]


@pytest.fixture(scope="module")
def three_brokers() -> Iterator[EmbeddedCluster]:
    """A cluster, started when the first test wants to break it."""
    with running_cluster() as running:
        yield running


@pytest.fixture
def cluster(three_brokers: EmbeddedCluster) -> EmbeddedCluster:
    """The cluster, all of it running; what a test has broken is fixed before the next one."""
    three_brokers.start(three_brokers.brokers)
    return three_brokers
