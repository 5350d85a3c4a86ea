"""`waitreg connect check` and `watch` on a real worker."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.commands import Commands
from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, wait_record
from tests.support.all_metrics import ALL_METRICS, service_of
from tests.support.command import run_waitreg
from tests.support.connect_connectors import Connectors
from tests.support.connect_worker import ConnectWorker
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.own_postgres import own_postgres
from tests.support.processes import Service, Services
from tests.support.topics import Topics
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

# Seconds instead of minutes.
WATCHING = {
    "connect.watch_interval_s": 0.3,
    "connect.request_timeout_s": 2,
    "connect.restart_backoff_s": 0.3,
    "connect.restart_backoff_max_s": 1,
}
# A task fails at once, instead of after the retries in its file.
IMPATIENT = {
    "flush.max.retries": "0",
    "connection.restart.on.errors": "false",
    "hibernate.c3p0.acquireRetryAttempts": "1",
    "hibernate.c3p0.acquireRetryDelay": "100",
}


@pytest.mark.guarantee("C.6")
def test_after_an_outage_of_postgres_every_row_is_there(
    connect: ConnectWorker,
    connectors: Connectors,
    settings_for: SettingsFactory,
    topics: Topics,
    names: Names,
    services: Services,
    tmp_path: Path,
) -> None:
    name = names("wait.sink")
    connectors.remove_at_end(name)
    given = {**WATCHING, "connect.url": connect.url, "connect.connectors": (name,), "processor.topics": ()}
    with own_postgres() as postgres:
        kinds = {"sink.kind": "connect", "sweeper.kind": "connect"}
        settings = settings_for({**given, **kinds, "postgres.url": postgres.url})
        database, run = Database(postgres.url), Commands(tmp_path, settings, names)
        topics.create_own(settings)
        database.install(settings)
        log = WaitTopic(topics, settings.wait.topic)
        watch = services.start("connect", settings, "watch")
        sample = partial(sample_of, watch, name)
        absent = f"connector {name} doesn't exist"
        wait_until(lambda: absent in watch.get("/health/ready")[1], what="the report of its absence")
        put_checked(run, connectors, run.file("wait.sink", changes=IMPATIENT))
        watch.wait_ready()
        log.write(wait_record(new_id(), 0))
        wait_until(lambda: rows_of(database, settings) == log.rows, what="the first row")
        wait_until(lambda: sample("running") == 1, what="the metric of its running")
        assert sample("restarts_total") == 0

        postgres.stop()
        log.write(wait_record(new_id(), 0))
        wait_until(lambda: sample("restarts_total") >= 3, 120, "three restarts")
        assert watch.get("/health/ready")[0] == 200, "it does its work"
        wait_until(lambda: sample("running") == 0, 60, "the metric of a failed task")
        assert watch.metrics()["waitreg_connect_postgres_up"] == 0
        assert "Connection refused" in connectors.wait_failed(name)

        postgres.start()
        wait_until(lambda: rows_of(database, settings) == log.rows, 120, "the row of the outage")
        wait_until(lambda: sample("running") == 1, 60, "the metric of its running")
        wait_until(lambda: watch.metrics()["waitreg_connect_postgres_up"] == 1, 60, "the metric of Postgres")
        exposed = watch.get("/metrics")[1]
        for metric in ALL_METRICS:
            assert service_of(metric) != "connect" or f"\n{metric.name}" in exposed, metric.name

        worker_that_hangs_is_survived(watch, connect)
        assert watch.terminate() == 0
        assert any(f"restarted {name}" in line.get("message", "") for line in watch.log_lines())


def put_checked(run: Commands, connectors: Connectors, file: str) -> None:
    """Check a connector's file, and create it as printed."""
    checked, printed = run("check", file), run("print", file)
    assert (checked.code, printed.code) == (0, 0), checked.errors + printed.errors
    config = json.loads(printed.output)
    connectors.rest.put(config["name"], config)
    connectors.wait_running(config["name"])


def sample_of(watch: Service, connector: str, metric: str) -> float:
    return watch.metrics().get(f'waitreg_connect_{metric}{{connector="{connector}"}}', -1)


def worker_that_hangs_is_survived(watch: Service, connect: ConnectWorker) -> None:
    connect.pause()
    try:
        wait_until(lambda: watch.metrics()["waitreg_connect_up"] == 0, 60, "the metric of the worker")
        status, body = watch.get("/health/ready")
        assert (status, "no Kafka Connect worker answers" in body) == (503, True)
    finally:
        connect.resume()
    watch.wait_ready(60)


def test_a_worker_that_refuses_us_ends_the_watch(connect: ConnectWorker, tmp_path: Path) -> None:
    # The path stands for any address that isn't a worker's.
    variables = {"WAITREG_CONNECT__URL": f"{connect.url}/elsewhere", "WAITREG_TELEMETRY__PORT": "0"}
    ended = run_waitreg(tmp_path, "connect", "watch", variables=variables)
    assert ended.code == 2
    assert "is connect.url the address of a worker?" in ended.errors


def test_a_sink_is_checked_created_and_continues_after_it_was_deleted(
    connectors: Connectors, prepared: SettingsFactory, topics: Topics, database: Database, names: Names, tmp_path: Path
) -> None:
    settings = prepared({"connect.url": connectors.rest.url, "sink.kind": "connect"})
    run, name = Commands(tmp_path, settings, names), names("wait.sink")
    connectors.remove_at_end(name)
    log, file = WaitTopic(topics, settings.wait.topic), run.file("wait.sink")
    put_checked(run, connectors, file)
    log.write(wait_record(new_id(), 0))
    wait_until(lambda: rows_of(database, settings) == log.rows, what="the first row")
    second_sink = run("check", run.file("second.sink"))
    assert (second_sink.code, f"{name} has the table" in second_sink.errors) == (2, True), second_sink.errors
    put_checked(run, connectors, file)
    connectors.rest.remove(name)
    log.write(wait_record(new_id(), 0))
    put_checked(run, connectors, file)
    wait_until(lambda: rows_of(database, settings) == log.rows, what="the second row")
