"""A client property that librdkafka doesn't know, or can't use: a sentence from every service, no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.database import Database
from tests.support.topics import Topics


@pytest.mark.parametrize("service", ["processor", "sweeper", "doctor"])
def test_a_property_that_does_not_exist_ends_every_service_with_a_sentence(
    service: str, settings_for: SettingsFactory, topics: Topics, database: Database, here: Path
) -> None:
    settings = settings_for({"processor.handler": "shop:handle"})
    topics.create_own(settings)
    database.install(settings)
    slip = {"WAITREG_KAFKA__LIBRDKAFKA": '{"sesion.timeout.ms": 6000}'}
    ended = run_waitreg(here, service, *(["--once"] if service == "sweeper" else []), settings=settings, variables=slip)
    said = ended.errors + ended.output
    assert ended.code == 2, said
    assert 'No such configuration property: "sesion.timeout.ms"' in said
    assert "Correct kafka.librdkafka" in said
    assert "Traceback" not in said


def test_client_properties_that_contradict_end_the_processor_clearly(
    settings_for: SettingsFactory, topics: Topics, here: Path
) -> None:
    settings = settings_for(
        {
            "processor.handler": "shop:handle",
            "kafka.librdkafka": {"session.timeout.ms": 60_000, "max.poll.interval.ms": 30_000},
        }
    )
    topics.create_own(settings)
    ended = run_waitreg(here, "processor", settings=settings)
    assert ended.code == 2, ended.errors
    assert "`max.poll.interval.ms`must be >= `session.timeout.ms`" in ended.errors
    assert "Traceback" not in ended.errors
