"""What the refusals use of other tests' fixtures, and a folder with a handler as a user has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.processor.conftest import processor_settings, processors
from tests.integration.sink.conftest import start_sink
from tests.integration.sweeper.conftest import scenario

__all__ = ["processor_settings", "processors", "scenario", "start_sink"]

HANDLER = "async def handle(record):\n    return None\n"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder that services run in, with a handler ``shop:handle`` that accepts everything."""
    (tmp_path / "shop.py").write_text(HANDLER)
    return tmp_path
