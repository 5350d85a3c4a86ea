"""`waitreg connect apply`, `remove` and `watch` on a real worker."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.commands import Commands
from tests.integration.sink.wait_topic import WaitTopic, new_id, rows_of, wait_record
from tests.support.command import Ended, run_waitreg
from tests.support.connect_connectors import Connectors
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.own_postgres import own_postgres
from tests.support.processes import Service, Services
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.telemetry.metrics import all_metrics
from waitreg.local.connect_worker import ConnectWorker

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
        applied = run("apply", run.file("wait.sink", changes=IMPATIENT))
        assert applied.code == 0, applied.output + applied.errors
        watch.wait_ready()
        log.write(wait_record(new_id(), 0))
        wait_until(lambda: rows_of(database, settings) == log.rows, what="the first row")
        wait_until(lambda: sample("running") == 1, what="the metric of its running")
        assert sample("restarts_total") == 0

        postgres.stop()
        log.write(wait_record(new_id(), 0))
        wait_until(lambda: sample("restart_limit_reached") == 1, 120, "the limit")
        assert watch.get("/health/ready")[0] == 200, "it does its work"
        assert sample("restarts_total") >= WATCHING["connect.restart_limit"]
        wait_until(lambda: sample("running") == 0, 60, "the metric of a failed task")
        assert watch.metrics()["waitreg_connect_postgres_up"] == 0
        failed = wait_until(lambda: failed_status(run), 60, "a status that shows the failure")
        assert f"failed: {name} task 0: " in failed.output and "Connection refused" in failed.output

        postgres.start()
        wait_until(lambda: rows_of(database, settings) == log.rows, 120, "the row of the outage")
        wait_until(lambda: sample("running") == 1, 60, "the metric of its running")
        wait_until(lambda: watch.metrics()["waitreg_connect_postgres_up"] == 1, 60, "the metric of Postgres")
        exposed = watch.get("/metrics")[1]
        for metric in all_metrics():
            assert metric.service != "connect" or f"\n{metric.name}" in exposed, metric.name

        worker_that_hangs_is_survived(watch, connect)
        assert watch.terminate() == 0
        assert any(f"restarted {name}" in line.get("message", "") for line in watch.log_lines())


def failed_status(run: Commands) -> Ended | None:
    """Return what `waitreg connect status` shows once it ends with 1; a restarted task is no failure for a moment."""
    shown = run("status")
    return shown if shown.code == 1 else None


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


@pytest.fixture
def waitreg_connect(connectors: Connectors, prepared: SettingsFactory, names: Names, tmp_path: Path) -> Commands:
    settings = prepared({"connect.url": connectors.rest.url, "sink.kind": "connect"})
    return Commands(tmp_path, settings, names)


def words(ended: Ended) -> list[str]:
    """Return the first word of each line."""
    return [line.split()[0] for line in ended.output.splitlines()]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"tasks.max": "many", "batch.size": "none"},
            ("{0} (bad.json): tasks.max: Invalid value many", "batch.size", "nothing was changed"),
        ),
        ({"connector.class": "no.such.Sink"}, ("lacks a connector class: put its jars into", "matches no.such.Sink")),
        ({"connection.password": "${file:/no/x:y}"}, ("Correct connect.secrets.*",)),
    ],
)
def test_a_refused_configuration_changes_no_connector(
    waitreg_connect: Commands, connectors: Connectors, names: Names, changes: dict[str, str], said: tuple[str, ...]
) -> None:
    refused = waitreg_connect("apply", waitreg_connect.file("good"), waitreg_connect.file("bad", changes=changes))
    assert refused.code == 2
    assert all(words.format(names("bad")) in refused.errors for words in said), refused.errors
    assert connectors.rest.status(names("good")) == connectors.rest.status(names("bad")) == {}


def test_apply_again_changes_nothing_and_after_remove_it_continues(
    waitreg_connect: Commands, connectors: Connectors, topics: Topics, database: Database, names: Names
) -> None:
    run, settings, name = waitreg_connect, waitreg_connect.settings, names("wait.sink")
    connectors.remove_at_end(name)
    log, file = WaitTopic(topics, settings.wait.topic), run.file("wait.sink")
    assert words(run("apply", file)) == ["created", "ok"]
    log.write(wait_record(new_id(), 0))
    wait_until(lambda: rows_of(database, settings) == log.rows, what="the first row")
    again = run("apply", file)
    assert (again.code, words(again)) == (0, ["unchanged", "ok"])
    second_sink = run("apply", run.file("second.sink"))
    assert (second_sink.code, f"{name} has the table" in second_sink.errors) == (2, True), second_sink.errors
    changed = run("apply", run.file("wait.sink", changes={"batch.size": "77"}))
    assert (changed.code, words(changed)) == (0, ["changed", "ok"])
    assert "batch.size" in changed.output

    def shown() -> dict[str, object]:
        status = run("status", name, "--json")
        assert status.code == 0, status.errors
        found = json.loads(status.output)["connectors"][0]
        return {name: found[name] for name in ("lag", "running")}

    wait_until(lambda: shown() == {"lag": 0, "running": True}, what="a sink that runs and is at the end")
    removed = run("remove", name, names("other"))
    assert (removed.code, words(removed)) == (0, ["removed", "not"])
    assert run("status", name).code == 1
    log.write(wait_record(new_id(), 0))
    assert run("apply", file).code == 0
    wait_until(lambda: rows_of(database, settings) == log.rows, what="the second row")
