"""Each change of the registration mode is a rolling restart under load, with kills in both modes (P1, P2, P5)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.checker.ledger import Ledger
from tests.chaos.checker.verdict import check
from tests.chaos.history.history import FaultDone
from tests.chaos.history.reading import read_history
from tests.chaos.history.watch import Watch
from tests.chaos.mixture import mixture
from tests.chaos.schedule import MODES
from tests.chaos.service import HeldPort, Service
from tests.integration.processor.scenario import ProcessorScenario, ScenarioFactory
from tests.support.processes import gone
from tests.support.waiting import wait_until
from waitreg.load.load import LoadPlan, run_load
from waitreg.load.manifest import read_manifest
from waitreg.local.environment import as_environment
from waitreg.local.ports import LOOPBACK

SESSIONS = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300}
# The interval of users: a kill leaves registrations that no commit has passed.
OWN: dict[str, Any] = {"max_in_flight": 20, "register_after_s": 0.3, "commit_interval_s": 0.5}
LATENCIES = "90%:10ms,10%:700ms"
SHARES = (("orders", 70), ("hostile", 20), ("empty", 5), ("null", 5))
RATE_PER_S = 100
CALLS = 100
"""That a process has made since its start, or that follow a change."""
REGISTERS: dict[str, Callable[[float], bool]] = {
    "eager": lambda share: share == 1,
    "deferred": lambda share: 0 < share < 1,
    "off": lambda share: share == 0,
}


class Change:
    """Two processors of one group, each to be restarted in another mode; a context manager that ends them."""

    def __init__(self, before: str, after: str, make: ScenarioFactory, folder: Path) -> None:
        self.port, self.folder, self.modes = HeldPort(), folder, (before, after, after)
        self.at = make(f"http://{LOOPBACK}:{self.port.number}/", 4, {"kafka.librdkafka": SESSIONS}, **OWN)
        self.faults: list[FaultDone] = []
        self.killed: dict[str, int] = {}
        """When each instance was killed."""
        options = ("--port", str(self.port.number), "--mixture", LATENCIES, "--log", str(folder / "calls.jsonl"))
        self.downstream = Service("downstream", ["downstream", *options], folder, {}, "/stats", self.port.number)
        given = (["processor"], folder, as_environment(self.at.settings))
        self.processors = [Service(f"processor-{number}", *given, modes=self.modes) for number in (1, 2)]
        self.company = (*self.processors, self.downstream)

    def __enter__(self) -> Change:
        for service in self.company:
            service.start()
        for service in self.company:
            wait_until(service.ready, what=f"readiness of {service.name}")
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        for service in self.company:
            service.kill()
        self.port.release()

    def end(self, victim: Service, how: str) -> None:
        """Kill a processor, or ``terminate`` it, in the middle of its work."""
        pid, began_ms = victim.pid, now_ms()
        if how == "kill":
            victim.kill()
            self.killed[f"{victim.name}/{victim.starts}"] = now_ms()
        else:
            victim.stop()
            assert victim.stopped_with == 0
        assert gone(pid)
        self.faults.append(FaultDone(how, victim.name, began_ms, now_ms(), str(victim.exits[-1])))

    def start(self, processor: Service) -> None:
        """Start a processor in its next mode, unless it runs; wait until it is ready and has made some calls."""
        processor.start()
        wait_until(lambda: processor.ready() and _calls_of(processor) >= CALLS, what=f"work of {processor.name}")

    def judge(self, watch: Watch) -> Ledger:
        """Judge by all rules of the chaos runs, except that what killed processes had registered may be open."""
        history = read_history(self.at.settings, self.folder, watch.polls, with_tables=False)
        verdict = check(replace(history, faults=self.faults, modes=self.modes))
        ledger = Ledger(verdict.history)
        abandoned = {entry.original for entry in ledger.open if entry.instance in self.killed}
        found = [one for one in verdict.violations if one.rule != "unfinished" or one.about not in abandoned]
        assert not (verdict.void or found), "\n\n".join([verdict.void, *map(str, found), *verdict.stories()])
        return ledger


@pytest.mark.guarantee("P1.20", "P2.6")
@pytest.mark.fault("F103")
@pytest.mark.parametrize(("before", "after"), [*permutations(MODES, 2)])
def test_each_mode_change_under_load_with_kills_loses_nothing(
    before: str, after: str, processor_scenario: ScenarioFactory, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        change = stack.enter_context(Change(before, after, processor_scenario, tmp_path))
        watch = stack.enter_context(Watch(change.at.settings, 0.05))
        first, second = change.processors
        with load(change.at, tmp_path / "manifest.jsonl") as manifest:
            for each in change.processors:
                change.start(each)
            for _ in range(2):  # in the old mode, and in the new one while the other process is in the old one
                change.end(first, "kill")
                change.start(first)
            change.end(second, "terminate")
            change.start(second)
            changed_ms, calls = now_ms(), _calls_of(second)
            wait_until(lambda: _calls_of(second) >= calls + CALLS, what="work after the change")
        published = len(list(read_manifest(manifest)))
        wait_until(lambda: sum(change.at.committed()) == published, what="the commit of all records")
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Service.stop, change.processors))
        assert [processor.stopped_with for processor in change.processors] == [0, 0]
    ledger = change.judge(watch)
    assert ledger.calls_of.keys() | {entry.original for entry in ledger.open} == ledger.inputs.keys()
    if "off" not in (before, after):  # docs/registration.md names what may be left then
        handled = [(entry, call) for entry in ledger.open for call in ledger.calls_of_id.get(entry.wait_id, ())]
        later = [str(entry) for entry, call in handled if call.started_ms > change.killed[entry.instance]]
        assert not later, "a registration that its process left when it was killed, although another one was called"
    registering = {entry.instance for entry in ledger.registrations}
    assert "processor-1/1" not in registering if before == "off" else "processor-2/1" in registering
    assert REGISTERS[after](share_registered(ledger, changed_ms))


@contextmanager
def load(at: ProcessorScenario, manifest: Path) -> Iterator[Path]:
    """Publish at a steady rate meanwhile; yields the list of what was published."""
    over = threading.Event()
    make = mixture(SHARES, at.settings.wait.max_message_bytes)
    plan = LoadPlan(at.topic, None, RATE_PER_S, make=make, manifest=manifest)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_load, at.settings, plan, stopping=over.is_set)
        try:
            yield manifest
        finally:
            over.set()
        running.result()


def share_registered(ledger: Ledger, since_ms: int) -> float:
    """Return which share of the records that were published since a moment was ever registered."""
    places = [place for place, record in ledger.inputs.items() if record.timestamp_ms > since_ms]
    return sum(place in ledger.registrations_of for place in places) / len(places)


def _calls_of(processor: Service) -> float:
    _, body = processor.get("/metrics")
    counts = (line for line in body.decode().splitlines() if line.startswith("waitreg_processor_handler_seconds_count"))
    return sum(float(line.rpartition(" ")[2]) for line in counts)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
