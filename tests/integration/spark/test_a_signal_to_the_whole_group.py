"""P8: a signal to a service's whole process group, as Ctrl-C is, ends it as in order as one to it alone."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.conftest import SettingsFactory
from tests.support.processes import Service, Services, runs
from tests.support.waiting import wait_until


def jvm_and_all_else_of(service: Service) -> list[psutil.Process]:
    """Return what a service has started, its JVM among it."""
    children = psutil.Process(service.pid).children(recursive=True)
    assert "java" in [child.name() for child in children]
    return children


@pytest.mark.guarantee("P8.17")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("name", ["sink", "sweeper"])
def test_it_ends_a_service_with_0_without_a_warning_and_with_all_that_it_had_started(
    name: str, number: signal.Signals, prepared: SettingsFactory, services: Services
) -> None:
    service = services.start(name, prepared(), own_group=True).wait_ready()
    started, said = jvm_and_all_else_of(service), len(service.log_lines())
    os.killpg(service.pid, number)

    assert service.wait() == 0, service.log.read_text("utf-8")
    wait_until(lambda: not any(map(runs, started)), what="the end of all that it had started")
    assert [line for line in service.log_lines()[said:] if line.get("level", "INFO") != "INFO"] == []
    assert "Traceback" not in service.log.read_text("utf-8")


def test_its_jvm_ends_with_a_service_that_is_killed(prepared: SettingsFactory, services: Services) -> None:
    service = services.start("sink", prepared(), own_group=True).wait_ready()
    started = jvm_and_all_else_of(service)
    os.kill(service.pid, signal.SIGKILL)

    assert service.wait() == -signal.SIGKILL
    wait_until(lambda: not any(map(runs, started)), what="the end of all that it had started")
