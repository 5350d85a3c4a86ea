"""A wait topic with a history, per test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import SettingsFactory
from tests.integration.sweeper.scenario import Scenario
from tests.support.database import Database
from tests.support.topics import Topics
from tests.support.traces import traced
from wait_registry.settings.tree import Settings

__all__ = ["traced"]

ScenarioFactory = Callable[..., Scenario]
Tables = psycopg.Connection[Any]


@pytest.fixture
def scenario(topics: Topics, database: Database) -> ScenarioFactory:
    """Return a factory of scenarios with a wait topic of one partition; every call makes another one."""

    def make(overrides: dict[str, Any] | None = None) -> Scenario:
        return Scenario.made(topics, database, {"wait.partitions": 1, "wait.skew_allowance_s": 0, **(overrides or {})})

    return make


@pytest.fixture
def settings(settings_for: SettingsFactory, database: Database) -> Settings:
    """Settings of a schema without rows."""
    settings = settings_for({})
    database.install(settings)
    return settings


@pytest.fixture
def tables(settings: Settings, database: Database) -> Iterator[Tables]:
    """A connection to the tables of `settings`."""
    with database.connect(settings) as connection:
        yield connection


@pytest.fixture
def at(scenario: ScenarioFactory) -> Scenario:
    """Return a scenario with the usual settings."""
    return scenario()
