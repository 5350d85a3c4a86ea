"""`waitreg connect watch` on a real worker restarts what an outage of Postgres has failed, until it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.connect.command_setting import connect_settings, own_sink_file, register
from tests.integration.connect.rows import wait_ids
from tests.support.command import Ended, run_waitreg
from tests.support.connect_rest import ConnectRest
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.own_postgres import own_postgres
from tests.support.processes import Service, Services
from tests.support.settings import settings_against
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.local.connect_worker import ConnectWorker
from wait_registry.settings.root import Settings
from wait_registry.telemetry.metrics import all_metrics

pytestmark = pytest.mark.timeout(300)

# Seconds instead of minutes: three restarts in half a minute are the limit, from then on one every ten seconds.
WATCHING = {
    "connect.watch_interval_s": 0.3,
    "connect.request_timeout_s": 2,
    "connect.restart_backoff_s": 0.3,
    "connect.restart_backoff_max_s": 1,
    "connect.restart_limit": 3,
    "connect.restart_window_s": 30,
}
# A task fails at once, instead of after the retries in its file.
IMPATIENT = {
    "flush__max__retries": "0",
    "connection__restart__on__errors": "false",
    "hibernate__c3p0__acquireRetryAttempts": "1",
    "hibernate__c3p0__acquireRetryDelay": "100",
}


@pytest.mark.guarantee("C.6")
def test_after_an_outage_of_postgres_every_row_is_there(
    connect: ConnectWorker, kafka: str, topics: Topics, names: Names, services: Services, tmp_path: Path
) -> None:
    name, rest = names("wait.sink"), ConnectRest(connect.url)
    with own_postgres() as postgres:
        more = {**WATCHING, "connect.connectors": (name,), "processor.topics": (), "sweeper.kind": "connect"}
        overrides = connect_settings(connect.url, more)
        settings = settings_against(kafka, postgres.url, names, overrides)
        database = Database(postgres.url)
        topics.create_own(settings)
        database.install(settings)
        file = own_sink_file(tmp_path, name, **IMPATIENT)
        watch = services.start("connect", settings, "watch")
        wait_until(
            lambda: f"connector {name} doesn't exist" in watch.get("/health/ready")[1], what="the report of its absence"
        )
        applied = run_waitreg(tmp_path, "connect", "apply", str(file), settings=settings)
        assert applied.code == 0, applied.output + applied.errors
        watch.wait_ready()
        first = register(topics, settings)
        wait_until(lambda: wait_ids(database, settings) == {first}, what="the first row")
        wait_until(lambda: sample(watch, "waitreg_connect_running", name) == 1, what="the metric of its running")
        assert sample(watch, "waitreg_connect_restarts_total", name) == 0

        postgres.stop()
        second = register(topics, settings)
        wait_until(lambda: sample(watch, "waitreg_connect_restart_limit_reached", name) == 1, 120, "the limit")
        assert watch.get("/health/ready")[0] == 200, "it does its work"
        assert sample(watch, "waitreg_connect_restarts_total", name) >= WATCHING["connect.restart_limit"]
        wait_until(lambda: sample(watch, "waitreg_connect_running", name) == 0, 60, "the metric of a failed task")
        assert watch.metrics()["waitreg_connect_postgres_up"] == 0
        failed = wait_until(lambda: status_with_a_failure(settings, tmp_path), 60, "a status that shows the failure")
        assert failed is not None
        assert f"failed: {name} task 0: " in failed.output and "Connection refused" in failed.output

        postgres.start()
        wait_until(lambda: wait_ids(database, settings) == {first, second}, 120, "the row of the outage")
        wait_until(lambda: sample(watch, "waitreg_connect_running", name) == 1, 60, "the metric of its running")
        wait_until(lambda: watch.metrics()["waitreg_connect_postgres_up"] == 1, 60, "the metric of Postgres")
        has_every_metric(watch)

        worker_that_hangs_is_survived(watch, connect)
        assert watch.terminate() == 0
        assert any(f"restarted {name}" in line.get("message", "") for line in watch.log_lines())
        rest.remove(name)


def status_with_a_failure(settings: Settings, folder: Path) -> Ended | None:
    """Return what `waitreg connect status` shows once it ends with 1; a restarted task is no failure for a moment."""
    shown = run_waitreg(folder, "connect", "status", settings=settings)
    return shown if shown.code == 1 else None


def worker_that_hangs_is_survived(watch: Service, connect: ConnectWorker) -> None:
    connect.pause()
    try:
        wait_until(lambda: watch.metrics()["waitreg_connect_up"] == 0, 60, "the metric of the worker")
        status, body = watch.get("/health/ready")
        assert (status, "no Kafka Connect worker answers" in body) == (503, True)
    finally:
        connect.resume()
    watch.wait_ready(60)


def has_every_metric(watch: Service) -> None:
    exposed = watch.get("/metrics")[1]
    for metric in all_metrics():
        if metric.service == "connect":
            assert f"\n{metric.name}" in exposed, metric.name


def sample(watch: Service, metric: str, connector: str) -> float:
    return watch.metrics().get(f'{metric}{{connector="{connector}"}}', -1)


def test_a_worker_that_refuses_us_ends_the_watch(connect: ConnectWorker, tmp_path: Path) -> None:
    # The path stands for any address that isn't a worker's.
    variables = {"WAITREG_CONNECT__URL": f"{connect.url}/elsewhere", "WAITREG_TELEMETRY__PORT": "0"}
    ended = run_waitreg(tmp_path, "connect", "watch", variables=variables)
    assert ended.code == 2
    assert "is connect.url the address of a worker?" in ended.errors
