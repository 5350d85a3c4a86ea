"""P1, P3, P4, P8: a host's clock is put forward or back while a processor, or a sweeper, runs there."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from tests.integration.processor.calls import HANDLERS
from tests.integration.processor.wait_topic import stories
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario, ids
from tests.support.processes import Service, Services
from tests.support.shared_services import start_shared
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.records.times import parse_utc_ms

SHIFTING = Path(__file__).with_name("shifted_clock")
STEPS_S = (30.0, -30.0, 3_600.0, -3_600.0)
BEYOND_KAFKAS_HOUR_S = 7_200.0
RIGHT_MS = 10_000
EACH = 20
TTL_S = 600.0
# Due by a clock that is an hour ahead, and by no other.
NOT_YET_MS = 1_800_000


class HostClock:
    """The clock that Python processes with this `environment` read; see ``shifted_clock/sitecustomize.py``."""

    def __init__(self, file: Path) -> None:
        """Begin with the right time.

        Args:
            file: to be made; it holds by how much the clock is off.
        """
        self._file = file
        self.step_to(0.0)

    @property
    def environment(self) -> dict[str, str]:
        return {"SHIFTED_CLOCK": str(self._file), "PYTHONPATH": f"{SHIFTING}{os.pathsep}{os.environ['PYTHONPATH']}"}

    def step_to(self, offset_s: float) -> None:
        """Put the clock forward of the right time, or back, s; running processes see it at once."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("d", offset_s))


@pytest.mark.fault("F100")
def test_the_clock_is_shifted_and_the_monotonic_one_is_not(tmp_path: Path) -> None:
    clock = HostClock(tmp_path / "clock")
    clock.step_to(-3_600)
    show = "import time, datetime; print(time.time(), datetime.datetime.now().timestamp(), time.monotonic())"
    found = subprocess.run([sys.executable, "-c", show], env=clock.environment, capture_output=True, check=True).stdout
    wall, also_wall, monotonic = map(float, found.split())
    assert abs(time.time() - wall - 3_600) < 600
    assert abs(time.time() - also_wall - 3_600) < 600
    assert abs(time.monotonic() - monotonic) < 600


@pytest.mark.fault("F101")
def test_a_processor_whose_clock_is_stepped_starts_nothing_and_stops(
    scenario: ScenarioFactory, topics: Topics, services: Services, tmp_path: Path
) -> None:
    hosts = [Host(scenario, topics, services, tmp_path / f"{step_s:g}", step_s) for step_s in STEPS_S]
    for host in hosts:
        wait_until(partial(host.has_called, EACH), 120, "the calls at the right time")
        host.clock.step_to(host.step_s)
        host.produce()
    for host in hosts:
        assert host.process.wait() == 1, host.step_s
        assert "Synchronize the clocks" in host.process.log.read_text()
        wrong = host.wrongly_registered()
        started = set(host.calls())
        assert wrong, "the step shows in what it registered"
        assert not wrong & started, "nothing was started under a wrong expiry"
        host.clock.step_to(0.0)
        assert host.start("--once").wait() == 0
        found = stories(topics.read(host.settings.wait.topic))
        assert len(found) == 2 * EACH, "nothing is lost"
        assert {story.outcomes[-1] for story in found.values() if story.resolved} == {"done"}
        left = {story.waits[0].key for story in found.values() if not story.resolved}
        assert left <= started, "what was being worked on when it stopped, at the most"


class Host:
    """A host with a processor and a clock of its own."""

    def __init__(
        self, scenario: ScenarioFactory, topics: Topics, services: Services, folder: Path, step_s: float
    ) -> None:
        folder.mkdir()
        self.step_s = step_s
        self.clock = HostClock(folder / "clock")
        self.settings = scenario(
            {
                "processor.handler": f"{HANDLERS}:slow",
                "processor.commit_interval_s": 0.1,
                "processor.ttl_s": TTL_S,
                "processor.max_in_flight": 10,
            }
        ).settings
        self._topics, self._services, self._calls = topics, services, folder / "calls"
        self.produce()
        self.process = self.start()

    def start(self, *arguments: str) -> Service:
        environment = {**self.clock.environment, "CALLS": str(self._calls)}
        return self._services.start("processor", self.settings, *arguments, environment=environment)

    def produce(self) -> None:
        self._topics.produce(self.settings.processor.topics[0], [b"value"] * EACH)

    def calls(self) -> list[bytes]:
        """Return the wait ids of all calls."""
        return [line.split()[0] for line in self._calls.read_bytes().splitlines()] if self._calls.exists() else []

    def has_called(self, times: int) -> bool:
        return len(self.calls()) >= times

    def wrongly_registered(self) -> set[bytes | None]:
        """Return the ids whose expiry isn't what the broker's time and the TTL make of it."""
        waits = [record for record in self._topics.read(self.settings.wait.topic) if record.value is not None]
        return {
            record.key
            for record in waits
            if abs(parse_utc_ms(record.text("WAIT_EXPIRATION_TIME")) - record.timestamp_ms - TTL_S * 1000) > RIGHT_MS
        }


@pytest.mark.fault("F102")
def test_a_sweeper_continues_whatever_the_clock_of_its_host_says(scenario: ScenarioFactory, tmp_path: Path) -> None:
    at, clock = scenario({"sweeper.interval_s": 0.5}), HostClock(tmp_path / "clock")
    at.show()  # a sink's first position, without which nothing is exported
    [sweeper] = start_shared("sweeping", [at.settings], tmp_path, clock.environment)
    due: list[Registered] = []
    try:
        for step_s in (0.0, *STEPS_S, BEYOND_KAFKAS_HOUR_S, 0.0):
            clock.step_to(step_s)
            at.register([at.wait_record(len(due), expires_in_ms=NOT_YET_MS)])
            due += at.due([at.wait_record(len(due))])
            wait_until(partial(are_exported, at, due), 60, f"the export on a clock {step_s:+g} s off")
        assert sweeper.process.poll() is None
    finally:
        sweeper.kill()


def are_exported(at: Scenario, due: list[Registered]) -> bool:
    """Return whether all of these are, and nothing that isn't due by the clock of Postgres."""
    exported = at.dead_lettered_ids()
    assert set(exported) <= {item.wait_id for item in due}
    return exported == ids(due)
