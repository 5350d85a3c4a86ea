"""The sweeper as a process: scheduled, watched, stopped, killed; what it refuses, it refuses before Spark starts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sweeper.service import SweeperService
from tests.conftest import SettingsFactory
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario
from tests.integration.sweeper.test_backlog import dead_letter
from tests.support.command import run_waitreg
from tests.support.database import Database
from tests.support.http_service import Answer, HttpService
from tests.support.processes import Services
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from waitreg.local.ports import free_ports


@pytest.fixture
def silent() -> Iterator[HttpService]:
    """A receiver of alerts that never answers."""
    with HttpService(lambda _: Answer(held_back=True)) as service:
        yield service


@pytest.mark.guarantee("P8.17")
def test_a_sweeper_process_exports_what_expires_and_ends_cleanly(
    scenario: ScenarioFactory, services: Services, silent: HttpService
) -> None:
    alerts = {"alerts.rule": [{"name": "any"}], "alerts.webhook.url": silent.address, "alerts.webhook.timeout_s": 60}
    at = scenario({"sweeper.interval_s": 0.5, **alerts})
    with at.database.connect(at.settings) as connection:
        dead_letter(connection, "1 minute", "Timeout")
    at.due()
    service = services.start("sweeper", at.settings).wait_ready()
    wait_until(lambda: len(at.dead_letters()) == 1, 60, "the dead letter")
    at.show()
    at.due([at.wait_record(2, value=b"a payload that no log may hold")])
    wait_until(lambda: len(at.dead_letters()) == 2, 60, "the second dead letter")
    # The dead letter is there before the sweep that wrote it is over and counted.
    wait_until(
        lambda: service.metrics()['waitreg_sweeper_rows_total{outcome="exported"}'] == 2, 60, "the count of both"
    )
    metrics = service.metrics()
    assert metrics['waitreg_ready{service="sweeper"}'] == 1
    assert service.get("/health/live")[0] == 200
    wait_until(lambda: silent.calls, what="the alert, which is sent until its timeout")
    assert service.terminate(30) == 0
    log = service.log.read_text()
    assert "a payload" not in log
    assert "maximum number of running instances" not in log, "APScheduler says the same of its own functions"
    done = [line for line in service.log_lines() if isinstance(line.get("sweep"), dict) and line["sweep"]["exported"]]
    assert [line["sweep"]["exported"] for line in done] == [1, 1]


@pytest.mark.fault("F75")
def test_a_sweeper_whose_jvm_dies_ends_loudly(scenario: ScenarioFactory, services: Services) -> None:
    """Nothing is due, so nothing would need it yet; but a sweeper that can't export must not look well."""
    at = scenario({"sweeper.interval_s": 0.5})
    service = services.start("sweeper", at.settings).wait_ready()
    for child in psutil.Process(service.pid).children():
        if child.name() == "java":
            child.kill()
    assert service.wait() == 1
    assert "Spark's JVM has ended" in service.log.read_text()


def test_a_single_sweep_prints_what_it_did(at: Scenario, tmp_path: Path) -> None:
    at.due([at.wait_record(1, expires_in_ms=600_000)])
    run = run_waitreg(tmp_path, "sweeper", "--once", settings=at.settings)
    assert run.code == 0, run.errors
    sweep = json.loads(run.output)
    assert (sweep["result"], sweep["due"]) == ("done", 0)


@pytest.mark.guarantee("P8.15")
def test_a_wait_topic_that_is_not_there_ends_the_process_with_2(at: Scenario, tmp_path: Path) -> None:
    at.topics.delete(at.settings.wait.topic)
    run = run_waitreg(tmp_path, "sweeper", "--once", settings=at.settings)
    assert run.code == 2
    assert "waitreg topics create" in run.errors


def test_missing_topics_and_a_missing_schema_are_refused_before_spark(
    settings_for: SettingsFactory, topics: Topics, database: Database, tmp_path: Path
) -> None:
    settings = settings_for({"spark.jars_dir": str(tmp_path)})
    with pytest.raises(ConfigurationError, match="waitreg db migrate"):
        SweeperService(settings).run()
    database.install(settings)
    with pytest.raises(ConfigurationError, match="waitreg topics create"):
        SweeperService(settings).run()


def test_servers_that_are_away_refuse_nothing(settings_for: SettingsFactory, tmp_path: Path) -> None:
    postgres, kafka = free_ports(2)
    away = {
        "postgres.url": f"postgresql://127.0.0.1:{postgres}/postgres",
        "kafka.bootstrap_servers": f"127.0.0.1:{kafka}",
        "kafka.request_timeout_s": 1,
        "spark.jars_dir": str(tmp_path),
    }
    with pytest.raises(ConfigurationError, match=r"the jar .* is missing"):
        SweeperService(settings_for(away)).run()
