"""Wait topics with histories for tests that need several, each with topics and a schema of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.sweeper.scenario import Scenario
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.settings import settings_against
from tests.support.stack import Stack
from tests.support.topics import Topics

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
