"""Fixtures of the processor's tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SettingsFactory
from tests.integration.processor.calls import Calls
from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import ScenarioFactory
from tests.support.processes import Services
from tests.support.topics import Topics
from tests.support.traces import traced
from wait_registry.settings.tree import Settings

__all__ = ["traced"]

QUICK: Mapping[str, Any] = {
    "processor.commit_interval_s": 0.1,
    "processor.backoff_initial_s": 0.01,
    "processor.drain_timeout_s": 10,
    "processor.flush_timeout_s": 5,
    "processor.ttl_s": 3600,
}


@pytest.fixture
def processors() -> Iterator[Processors]:
    """Starts processors in threads."""
    own = Processors()
    yield own
    own.close()


@pytest.fixture
def processor_settings(settings_for: SettingsFactory, topics: Topics) -> SettingsFactory:
    """Return a factory of settings with quick commits, whose topics exist (no Postgres anywhere).

    Its arguments: settings by dotted name, the input topics' partitions, and their configuration.
    """

    def make(overrides: Mapping[str, Any], input_partitions: int = 3, **input_config: str) -> Settings:
        settings = settings_for({**QUICK, **overrides})
        for topic in settings.processor.topics:
            topics.create(topic, input_partitions, **input_config)
        topics.create_own(settings)
        return settings

    return make


@pytest.fixture
def processor_scenario(processor_settings: SettingsFactory, topics: Topics, processors: Processors) -> ScenarioFactory:
    """Make scenarios on the broker of the run."""
    return ScenarioFactory(processor_settings, topics, processors)


@pytest.fixture
def calls(services: Services, tmp_path: Path) -> Calls:
    """The calls of handlers in processes."""
    return Calls(services, tmp_path / "calls")
