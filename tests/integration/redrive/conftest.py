"""A group with dead letters."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.integration.redrive.scenario import Scenario
from tests.support.database import Database
from tests.support.topics import Topics


@pytest.fixture
def at(prepared: SettingsFactory, topics: Topics, database: Database) -> Scenario:
    """A group without members, whose topics and tables exist."""
    return Scenario(prepared(), topics, database)
