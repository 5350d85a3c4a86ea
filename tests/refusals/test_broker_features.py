"""A processor whose group protocol the broker has switched off is refused at its start, by doctor too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.doctor.findings import look
from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import accepts
from tests.support.settings import with_broker
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.broker_rules import PROTOCOLS
from wait_registry.local.broker import EmbeddedBroker
from wait_registry.local.ports import free_ports


@pytest.fixture
def classic_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker with the classic group protocol only."""
    first, second = free_ports(2)
    properties = {PROTOCOLS: "classic"}
    broker = EmbeddedBroker(tmp_path / "broker", (first, second), properties=properties, temporary=True)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def test_a_group_protocol_that_is_off_is_refused(
    classic_broker: EmbeddedBroker,
    settings_for: SettingsFactory,
    processors: Processors,
    caplog: pytest.LogCaptureFixture,
) -> None:
    overrides = {"processor.group_protocol": "consumer", "processor.handler": processors.handler(accepts)}
    settings = with_broker(settings_for(overrides), classic_broker.bootstrap_servers)
    Topics(classic_broker.bootstrap_servers).create_own(settings)
    with pytest.raises(ConfigurationError, match=rf"{PROTOCOLS} is classic.*group_protocol to .classic."):
        processors.start(settings).join()
    assert "kafka.group_protocol" in look(settings, "processor").broken
    working = settings.model_copy(
        update={
            "processor": settings.processor.model_validate(
                {**settings.processor.model_dump(), "group_protocol": "classic"}
            )
        }
    )
    caplog.set_level("INFO")
    processors.run_once(working)
    assert "Kafka version: Kafka 4.2; features: " in caplog.text
