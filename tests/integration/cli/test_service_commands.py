"""The three services as commands: ready, asked to stop, and what a start refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.processes import Services


@pytest.mark.parametrize("name", ["processor", "sink", "sweeper"])
def test_sigterm_ends_a_running_service_with_0(
    name: str, prepared: SettingsFactory, services: Services, here: Path
) -> None:
    settings = prepared({"processor.handler": "shop:handle"})
    service = services.start(name, settings).wait_ready()
    assert service.terminate() == 0, service.log.read_text("utf-8")
    assert "Traceback" not in service.log.read_text("utf-8")
