"""A group with dead letters."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.integration.redrive.scenario import Scenario
from tests.integration.sink.conftest import start_sink
from tests.support.database import Database
from tests.support.topics import Topics

__all__ = ["at", "start_sink"]


@pytest.fixture
def at(prepared: SettingsFactory, topics: Topics, database: Database) -> Scenario:
    """A group without members, whose topics and tables exist."""
    # So that the redelivery topic exists.
    return Scenario(prepared({"processor.expiry_policy": "redeliver"}), topics, database)
