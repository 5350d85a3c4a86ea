"""What the refusals use of other tests' fixtures, and a folder with a handler as a user has it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.processor.conftest import processor_scenario, processor_settings, processors
from tests.integration.sink.conftest import start_sink
from tests.integration.sweeper.conftest import scenario
from tests.refusals.secured_settings import SecuredSettings
from tests.support.naming import Names
from tests.support.secured_broker import SecuredBroker
from tests.support.stack import Stack

__all__ = ["processor_scenario", "processor_settings", "processors", "scenario", "start_sink"]

HANDLER = "async def handle(record):\n    return None\n"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder that services run in, with a handler ``shop:handle`` that accepts everything."""
    (tmp_path / "shop.py").write_text(HANDLER)
    return tmp_path


@pytest.fixture
def secured_settings(secured: SecuredBroker, stack: Stack, names: Names) -> Iterator[SecuredSettings]:
    """Settings against the broker that asks for users and rights; Postgres is the run's."""
    own = SecuredSettings(secured, stack.postgres_url, names)
    yield own
    own.close()
