"""The three services as commands: ready, asked to stop, and what a start refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.processes import Services
from tests.support.topics import Topics

_HANDLER = "async def handle(record):\n    return None\n"


@pytest.mark.parametrize("name", ["processor", "sink", "sweeper"])
def test_sigterm_ends_a_running_service_with_0(
    name: str, prepared: SettingsFactory, services: Services, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(_HANDLER)
    settings = prepared({"processor.handler": "shop:handle"})
    service = services.start(name, settings).wait_ready()
    assert service.terminate() == 0, service.log.read_text("utf-8")
    assert "Traceback" not in service.log.read_text("utf-8")


def test_once_works_off_what_is_there_and_ends_with_0(
    prepared: SettingsFactory, topics: Topics, services: Services, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(_HANDLER)
    settings = prepared({"processor.handler": "shop:handle"})
    topics.produce(settings.processor.topics[0], [Outgoing(b"%d" % number) for number in range(50)])

    assert services.start("processor", settings, "--once").wait() == 0
    entries = topics.read(settings.wait.topic)
    waits = {entry.key for entry in entries if entry.value is not None}
    tombstones = {entry.key for entry in entries if entry.value is None}
    assert len(waits) == 50
    assert waits == tombstones


@pytest.mark.parametrize("name", ["processor", "sweeper"])
def test_a_service_without_its_topics_ends_with_2_and_names_the_command(
    name: str, settings_for: SettingsFactory, database: Database, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(_HANDLER)
    settings = settings_for({"processor.handler": "shop:handle"})
    database.install(settings)
    # A single sweep looks at everything before it starts Spark, and ends sooner.
    ended = run_waitreg(tmp_path, name, "--once", settings=settings)
    assert ended.code == 2, ended.errors
    assert f"waitreg {name}: " in ended.errors
    assert "waitreg topics create" in ended.errors
    assert "Traceback" not in ended.errors


@pytest.mark.parametrize("name", ["sink", "sweeper"])
def test_a_service_without_its_schema_ends_with_2_and_names_the_command(
    name: str, settings_for: SettingsFactory, topics: Topics, tmp_path: Path
) -> None:
    settings = settings_for()
    topics.create_own(settings)
    ended = run_waitreg(tmp_path, name, "--once", settings=settings)
    assert ended.code == 2, ended.errors
    assert "waitreg db migrate" in ended.errors
