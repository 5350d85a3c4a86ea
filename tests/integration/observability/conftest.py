"""The system at work under a real Prometheus, once for all questions that are asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.integration.observability.live_system import OVERRIDES, SERVICES, STEP_S, LiveSystem
from tests.support.database import Database
from tests.support.http_service import Answer, HttpService
from tests.support.naming import Names
from tests.support.prometheus import Prometheus, prometheus_tool, running_prometheus
from tests.support.settings import settings_against
from tests.support.topics import Topics
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from wait_registry.local.stack import EmbeddedStack


@dataclass(frozen=True, slots=True)
class Observed:
    """A system that has worked, and the Prometheus that watched it."""

    system: LiveSystem
    prometheus: Prometheus


@pytest.fixture(scope="module")
def receiver() -> Iterator[HttpService]:
    """What takes the messages of the alerts."""
    with HttpService(lambda _: Answer()) as service:
        yield service


@pytest.fixture(scope="module")
def observed(
    stack: EmbeddedStack, spark: SparkSession, receiver: HttpService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Observed]:
    prometheus_tool("prometheus")  # skips before anything is started
    settings = settings_against(stack.bootstrap_servers, stack.postgres_url, Names(), OVERRIDES)
    topics, database = Topics(stack.bootstrap_servers), Database(stack.postgres_url)
    topics.create_own(settings, 1)
    database.install(settings)
    system = LiveSystem(settings, topics, database, receiver.address)
    jobs = {f"waitreg-{service}": [system.ports[service]] for service in SERVICES}
    try:
        system.start(spark)
        with running_prometheus(tmp_path_factory.mktemp("prometheus"), jobs) as prometheus:
            ready = "count(waitreg_ready == 1)"
            wait_until(lambda: prometheus.value(ready) == len(SERVICES), STEP_S, "all services at work")
            # increase() sees what comes after the second scrape.
            scraped_twice = 'min(count_over_time(up{job=~"waitreg-.+"}[5m])) > 2'
            wait_until(lambda: prometheus.query(scraped_twice), STEP_S, "two scrapes of each")
            system.work(prometheus)
            yield Observed(system, prometheus)
    finally:
        system.stop()
        topics.close()
        database.close()
