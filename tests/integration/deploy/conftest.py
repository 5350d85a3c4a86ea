"""The system at work under a real Prometheus, once for all questions that are asked of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.integration.deploy.live_system import OVERRIDES, SERVICES, STEP_S, LiveSystem
from tests.integration.sweeper.scenario import Scenario
from tests.support.database import Database
from tests.support.http_service import Answer, HttpService
from tests.support.naming import Names
from tests.support.prometheus import Prometheus, prometheus_tool, running_prometheus
from tests.support.settings import settings_against
from tests.support.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from waitreg.local.stack import EmbeddedStack


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
    system = LiveSystem(Scenario(settings, topics, database), receiver.address)
    jobs = {f"waitreg-{service}": [system.ports[service]] for service in SERVICES}
    try:
        system.start(spark)
        with running_prometheus(tmp_path_factory.mktemp("prometheus"), jobs) as prometheus:
            prometheus.wait(f"count(waitreg_ready == 1) == {len(SERVICES)}", STEP_S)
            # increase() sees what comes after the second scrape.
            prometheus.wait('min(count_over_time(up{job=~"waitreg-.+"}[5m])) > 2', STEP_S)
            system.work(prometheus)
            yield Observed(system, prometheus)
    finally:
        system.stop()
        topics.close()
        database.close()
