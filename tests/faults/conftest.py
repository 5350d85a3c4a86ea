"""What the fault tests use of other tests' fixtures, and wait topics with names of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.processor.conftest import processor_settings, processors
from tests.integration.sink.conftest import start_sink
from tests.integration.sweeper.conftest import scenario
from tests.integration.sweeper.scenario import Scenario
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.settings import settings_against
from tests.support.stack import Stack
from tests.support.topics import Topics

__all__ = ["processor_settings", "processors", "scenario", "start_sink"]

AnotherScenario = Callable[..., Scenario]


@pytest.fixture
def another_scenario(stack: Stack, topics: Topics, database: Database) -> AnotherScenario:
    """Return a factory of scenarios for tests that need several: each call has topics and a schema of its own."""

    def make(overrides: dict[str, Any] | None = None) -> Scenario:
        small = {"wait.partitions": 1, "dead_letter.partitions": 1, "wait.skew_allowance_s": 0}
        settings = settings_against(
            stack.bootstrap_servers, stack.postgres_url, Names(), {**small, **(overrides or {})}
        )
        topics.create_own(settings)
        database.install(settings)
        return Scenario(settings, topics, database)

    return make
