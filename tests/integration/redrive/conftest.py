"""A group with dead letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.conftest import RunHere, SettingsFactory
from tests.integration.processor.conftest import processors
from tests.integration.processor.running import Processors
from tests.integration.redrive.handling import Handling
from tests.integration.redrive.scenario import Scenario
from tests.integration.sink.conftest import start_sink
from tests.support.database import Database
from tests.support.topics import Topics

__all__ = ["processors", "start_sink"]

Type = Callable[..., tuple[int, str]]


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


@pytest.fixture
def typed(at: Scenario, run_here: RunHere) -> Type:
    """Return what runs `waitreg dlq` as an operator types it, and returns its status and what it printed."""

    def run(*arguments: str) -> tuple[int, str]:
        ended = run_here(at.settings, "dlq", *arguments)
        return ended.code, ended.output + ended.errors

    return run
