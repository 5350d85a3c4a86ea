"""A group with dead letters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conftest import SettingsFactory
from tests.integration.processor.conftest import processors
from tests.integration.processor.running import Processors
from tests.integration.redrive.handling import Handling
from tests.integration.redrive.scenario import Scenario
from tests.integration.redrive.typed import typed
from tests.integration.sink.conftest import start_sink
from tests.support.database import Database
from tests.support.topics import Topics

__all__ = ["at", "processors", "start_sink", "typed"]


@pytest.fixture
def at(prepared: SettingsFactory, topics: Topics, database: Database) -> Scenario:
    """A group without members, whose topics and tables exist."""
    return Scenario(prepared(), topics, database)


@pytest.fixture
def handling(at: Scenario, processors: Processors) -> Iterator[Handling]:
    """Members of the group, whose handler ends with the test."""
    own = Handling(at, processors)
    yield own
    own.ended.set()
