"""Fixtures of the fault tests: what other tests make, and wait topics, links and clusters of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.faults.cluster import EmbeddedCluster
from tests.integration.processor.conftest import processor_settings, processors
from tests.integration.sink.conftest import sink_scenario, start_sink
from tests.integration.sweeper.conftest import scenario
from tests.integration.sweeper.scenario import Scenario
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.settings import settings_against
from tests.support.stack import Stack
from tests.support.topics import Topics

__all__ = ["processor_settings", "processors", "scenario", "sink_scenario", "start_sink"]


AnotherScenario = Callable[..., Scenario]


@pytest.fixture
def another_scenario(stack: Stack, topics: Topics, database: Database) -> AnotherScenario:
    """Return a factory of scenarios with one partition; every call makes another one."""

    def make(overrides: dict[str, Any] | None = None) -> Scenario:
        small = {"wait.partitions": 1, "dead_letter.partitions": 1, "wait.skew_allowance_s": 0}
        given = {**small, **(overrides or {})}
        settings = settings_against(stack.bootstrap_servers, stack.postgres_url, Names(), given)
        topics.create_own(settings)
        database.install(settings)
        return Scenario(settings, topics, database)

    return make


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
