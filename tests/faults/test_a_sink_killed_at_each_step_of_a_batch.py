"""P6, P8: wherever in a batch the driver dies, its JVM or all of it, the next sink makes the view exact, once."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import AnotherScenario
from tests.faults.sinks_at_each_step import stopped_sinks
from tests.integration.sink.conftest import StartSink
from tests.support.processes import Service, runs
from tests.support.shared_services import start_shared
from tests.support.waiting import wait_until


@pytest.mark.fault("F55")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("killed", ["process", "jvm"])
def test_the_next_sink_goes_on_exactly_whichever_step_the_driver_died_at(
    another_scenario: AnotherScenario, start_sink: StartSink, tmp_path: Path, killed: str
) -> None:
    with stopped_sinks(another_scenario) as sinks:
        services = start_shared("sink", [sink.settings for sink in sinks], tmp_path)
        for sink, service in zip(sinks, services, strict=True):
            sink.write_first()
            service.wait_ready()
        for sink in sinks:
            wait_until(sink.is_exact, what=f"the first rows, {sink.step}")
            sink.stop()
            sink.write_second()
        for sink in sinks:
            wait_until(sink.reached, what=f"the stop {sink.step}")
        (kill if killed == "process" else kill_the_jvm)(services[0])

    started = [start_sink(sink.at.settings, once=True) for sink in sinks]
    for sink, again in zip(sinks, started, strict=True):
        assert again.wait_ended() is None, sink.step
        assert sink.is_exact(), sink.step
        assert sink.doubled() == [], f"no tombstone was applied twice, {sink.step}"


def kill(service: Service) -> None:
    """Kill the process and its JVM at once."""
    service.kill()
    assert service.process.returncode == -9


def kill_the_jvm(service: Service) -> None:
    """Kill its JVM and wait for the process to end over it."""
    [java] = [child for child in psutil.Process(service.pid).children() if child.name() == "java"]
    java.kill()
    assert service.wait() == 1
    assert not runs(java)
