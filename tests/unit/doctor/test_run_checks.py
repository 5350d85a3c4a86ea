"""How checks are run: each ends, one failure hides no other, and the port of telemetry is looked at."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from threading import Event

import pytest

from wait_registry.diagnosis import Diagnosis, Severity, ok
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.service.health import Health
from wait_registry.settings.relations import Service
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.exposition import MetricsRegistry, Reading
from wait_registry.telemetry.metrics import PROCESSOR_INFO, READY
from wait_registry.telemetry.server import TelemetryServer
from waitreg.check_report import exit_code
from waitreg.doctor import check as running
from waitreg.doctor.catalogue import SERVICES, all_checks
from waitreg.doctor.check import Check, Look, run_checks
from waitreg.doctor.machine import telemetry_port

SETTINGS = Settings()


def sound(_settings: Settings) -> Iterator[Diagnosis]:
    yield ok("sound")


def raising(error: BaseException) -> Look:
    def look(_settings: Settings) -> Iterator[Diagnosis]:
        yield ok("sound")
        raise error

    return look


def run(*checks: Check) -> list[Diagnosis]:
    return list(run_checks(checks, SETTINGS, lambda _: None))


@pytest.mark.parametrize(
    ("error", "seen", "fix"),
    [
        (ConfigurationError("the topic is missing"), "the topic is missing", "make it"),
        (ValueError("unforeseen"), "ValueError: unforeseen", "make it"),
        (SystemExit("a handler's module ends it"), "SystemExit: a handler's module ends it", "make it"),
        (
            ImportError("No module named 'psycopg'"),
            "No module named 'psycopg'",
            "pip install 'wait-registry[sink,sweeper]'",
        ),
    ],
)
def test_an_exception_is_a_line_and_the_next_check_runs(error: BaseException, seen: str, fix: str) -> None:
    lines = run(Check("thing", "a thing", raising(error), fix="make it"), Check("other", "another", sound))
    assert [line.severity for line in lines] == [Severity.OK, Severity.ERROR, Severity.OK]
    assert (lines[1].id, lines[1].subject, lines[1].message) == ("thing", "a thing", seen)
    assert lines[1].fix.startswith(fix)


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([], 0),
        ([TransientError("no answer")], 1),
        ([TransientError("no answer"), PostgresUnavailable("refused")], 1),
        ([TransientError("no answer"), ConfigurationError("the topic is missing")], 2),
        ([ValueError("unforeseen")], 2),
    ],
)
def test_only_transient_errors_end_with_1(errors: list[BaseException], code: int) -> None:
    checks = [Check(f"thing.{number}", "a thing", raising(error)) for number, error in enumerate(errors)]
    assert exit_code(run(*checks, Check("then", "the next", sound, needs=("thing",)))) == code


def test_a_check_that_hangs_is_reported_and_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE_S", 0.01)
    monkeypatch.setattr(running, "longest_s", lambda _settings: 0.1)
    released, noticed = Event(), list[str]()

    def hang(_settings: Settings) -> Iterator[Diagnosis]:
        yield ok("sound")
        released.wait(60)

    checks = (Check("thing", "a thing", hang, fix="look at it"), Check("other", "another", sound))
    lines = list(run_checks(checks, SETTINGS, noticed.append))
    released.set()
    assert [line.severity for line in lines[-2:]] == [Severity.ERROR, Severity.OK]
    assert "didn't end within" in lines[-2].message
    assert noticed == ["a thing: still checking, for 0 s at most"]


@pytest.mark.parametrize(
    ("failed", "need", "skipped"),
    [
        ("topic.wait.cleanup.policy", "topic.wait", True),
        ("topic.wait", "topic.wait", True),
        ("topic", "topic.wait", True),
        ("topic.dead_letter.missing", "topic.wait", False),
        ("topic.waiting", "topic.wait", False),
    ],
)
def test_a_check_is_skipped_if_one_it_needs_has_an_error(failed: str, need: str, skipped: bool) -> None:
    broken = Check(failed, "the topic", raising(ConfigurationError("broken")))
    then = Check("then", "the next", sound, needs=(need,))
    after = Check("after", "the one after", sound, needs=("then",))
    lines = run(broken, then, after)[2:]
    expected = [Severity.SKIPPED] * 2 if skipped else [Severity.OK] * 2
    assert [line.severity for line in lines] == expected
    if skipped:
        assert {line.message for line in lines} == {"the topic must be sound first"}


def test_ids_are_unique_and_needed_checks_come_first() -> None:
    ids: list[str] = []
    for check in all_checks(SERVICES):
        for need in check.needs:
            assert any(need == known or need.startswith(f"{known}.") for known in ids), (check.id, need)
        assert check.id not in ids
        ids.append(check.id)


WITHOUT_PSYCOPG = """
import sys

sys.modules["psycopg"] = None
from wait_registry.settings.tree import Settings
from waitreg.doctor.catalogue import all_checks
from waitreg.doctor.check import run_checks

checks = [check for check in all_checks() if check.id.startswith(("postgres", "tables", "sweep", "version.packages"))]
for line in run_checks(checks, Settings(), print):
    print(line.id, line.severity, line.fix)
"""


def test_without_psycopg_the_checks_of_postgres_name_the_extra() -> None:
    ended = subprocess.run([sys.executable, "-c", WITHOUT_PSYCOPG], capture_output=True, text=True, timeout=120)
    assert ended.stdout.splitlines() == [
        "version.packages ok ",
        "postgres.reachable error pip install 'wait-registry[sink,sweeper]'",
    ], ended.stderr


ALL: Sequence[Service] = ("processor", "sink", "sweeper")


def say(port: int, services: Sequence[Service] = ALL) -> Diagnosis:
    settings = Settings.model_validate(
        {"telemetry": {"host": "127.0.0.1", "port": port}, "processor": {"group": "shop"}}
    )
    [line] = telemetry_port(services, settings)
    return line


def telemetry_of(service: str, *, ready: bool = True, group: str = "") -> TelemetryServer:
    registry = MetricsRegistry()
    registry.collect_from(lambda: [Reading(READY, ready, (service,))])
    if group:
        registry.collect_from(lambda: [Reading(PROCESSOR_INFO, 1, (group, "registry", "host-1"))])
    return TelemetryServer("127.0.0.1", 0, registry, lambda: Health(True), lambda: Health(ready))


def test_a_free_port_is_ok_and_remains_free() -> None:
    with telemetry_of("sink") as server:
        port = server.port
    assert say(port).message == f"127.0.0.1:{port} is free"
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize(
    ("ready", "group", "asked", "severity", "said"),
    [
        (True, "", ALL, Severity.OK, "in use by a running processor, ready"),
        (False, "", ("processor",), Severity.OK, "in use by a running processor, not ready"),
        (True, "shop", ALL, Severity.OK, "in use by a running processor of the group shop, ready"),
        (True, "billing", ALL, Severity.WARNING, "taken by a running processor of the group billing"),
        (True, "shop", ("sink", "sweeper"), Severity.WARNING, "taken by a running processor of the group shop"),
    ],
)
def test_only_the_checked_service_may_use_the_port(
    ready: bool, group: str, asked: Sequence[Service], severity: Severity, said: str
) -> None:
    with telemetry_of("processor", ready=ready, group=group) as server:
        line = say(server.port, asked)
        assert (line.severity, line.message) == (severity, f"127.0.0.1:{server.port} is {said}")
    assert severity is Severity.OK or "telemetry.port" in line.fix


def test_another_http_server_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]

        def answer() -> None:
            connection, _ = stranger.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b'HTTP/1.0 200 OK\r\n\r\n{"status": "UP"}')

        thread = threading.Thread(target=answer)
        thread.start()
        line = say(port)
        thread.join()
    assert (line.severity, "isn't a service of wait-registry" in line.message) == (Severity.ERROR, True)
    assert "telemetry.port" in line.fix
