"""Fixtures of the fault tests: a broker on which sessions may be short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.integration.processor.conftest import QUICK as QUICK_COMMITS
from tests.integration.processor.conftest import calls, processor_scenario, processor_settings, processors
from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import ScenarioFactory, scenarios_on
from tests.refusals.conftest import secured_settings
from tests.support.naming import Names
from wait_registry.settings.tree import Settings
from waitreg.local.stack import EmbeddedStack

__all__ = ["calls", "processor_scenario", "processor_settings", "processors", "secured_settings"]

# Under KIP-848 the broker says how long a silent member belongs to its group: 45 s by default, and at least.
SHORT_SESSIONS = {"group.consumer.min.session.timeout.ms": "1000", "group.consumer.session.timeout.ms": "2000"}
QUICK: Mapping[str, Any] = {**QUICK_COMMITS, "kafka.request_timeout_s": 5}
# What is lost, or new, is noticed in seconds. How long a session is, the client says in the classic protocol alone.
CLASSIC = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}
IMPATIENT = {"topic.metadata.refresh.interval.ms": 500, "reconnect.backoff.max.ms": 300}


@pytest.fixture(scope="package")
def short_sessions() -> Iterator[EmbeddedStack]:
    """The broker of the fault tests."""
    with EmbeddedStack(broker_properties=SHORT_SESSIONS, postgres_settings={"fsync": "off"}) as running:
        yield running


@pytest.fixture
def faulty_scenario(short_sessions: EmbeddedStack, names: Names, processors: Processors) -> ScenarioFactory:
    """Make scenarios with quick commits and short sessions."""
    plain = scenarios_on(short_sessions, names, processors)

    def make(overrides: Mapping[str, Any], partitions: int) -> Settings:
        sessions = CLASSIC if overrides.get("processor.group_protocol", "classic") == "classic" else {}
        librdkafka = {**IMPATIENT, **sessions, **overrides.get("kafka.librdkafka", {})}
        return plain.make_settings({**QUICK, **overrides, "kafka.librdkafka": librdkafka}, partitions)

    return replace(plain, make_settings=make)
