"""Fixtures of the fault tests: a broker behind a link that can be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.integration.processor.conftest import QUICK as QUICK_COMMITS
from tests.integration.processor.conftest import calls, processor_scenario, processor_settings, processors
from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import ScenarioFactory
from tests.refusals.conftest import secured_settings
from tests.support.naming import Names
from tests.support.proxied_stack import ProxiedStack
from tests.support.settings import settings_against, with_broker
from tests.support.topics import Topics
from wait_registry.settings.root import Settings

__all__ = ["calls", "processor_scenario", "processor_settings", "processors", "secured_settings"]

ROUTE = "processor"
# Under KIP-848 the broker says how long a silent member belongs to its group: 45 s by default, and at least.
SHORT_SESSIONS = {"group.consumer.min.session.timeout.ms": "1000", "group.consumer.session.timeout.ms": "2000"}
QUICK: Mapping[str, Any] = {**QUICK_COMMITS, "kafka.request_timeout_s": 5}
# What is lost, or new, is noticed in seconds. How long a session is, the client says in the classic protocol alone.
CLASSIC = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}
IMPATIENT = {
    "topic.metadata.refresh.interval.ms": 500,
    "reconnect.backoff.max.ms": 300,
}


@pytest.fixture(scope="package")
def proxied() -> Iterator[ProxiedStack]:
    """A broker of the fault tests, with a link before it that can be broken."""
    with ProxiedStack([ROUTE], broker_properties=SHORT_SESSIONS, postgres_settings={"fsync": "off"}) as running:
        yield running


@pytest.fixture
def faulty_topics(proxied: ProxiedStack) -> Iterator[Topics]:
    """Topics of this test's own, reached past the link."""
    own = Topics(proxied.stack.bootstrap_servers)
    yield own
    own.close()


@pytest.fixture
def faulty_settings(proxied: ProxiedStack, faulty_topics: Topics, names: Names) -> Callable[..., Settings]:
    """Return a factory of settings for a processor behind the link, whose topics exist (as `processor_settings`)."""

    def make(overrides: Mapping[str, Any], input_partitions: int = 3, **input_config: str) -> Settings:
        sessions = CLASSIC if overrides.get("processor.group_protocol", "classic") == "classic" else {}
        librdkafka = {**IMPATIENT, **sessions, **overrides.get("kafka.librdkafka", {})}
        given = {**QUICK, **overrides, "kafka.librdkafka": librdkafka}
        settings = settings_against(proxied.stack.bootstrap_servers, proxied.stack.postgres_url, names, given)
        for topic in settings.processor.topics:
            faulty_topics.create(topic, input_partitions, **input_config)
        faulty_topics.create_own(settings)
        return with_broker(settings, proxied.bootstrap_of(ROUTE))

    return make


@pytest.fixture
def faulty_scenario(
    faulty_settings: Callable[..., Settings], faulty_topics: Topics, processors: Processors
) -> ScenarioFactory:
    """Make scenarios whose processors are behind the link."""
    return ScenarioFactory(faulty_settings, faulty_topics, processors)


@pytest.fixture
def unbroken(proxied: ProxiedStack) -> Iterator[None]:
    """Repair the link after the test."""
    yield
    proxied.link(ROUTE).allow()
    proxied.link(ROUTE).flow()
