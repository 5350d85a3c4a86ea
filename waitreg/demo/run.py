"""One run of the demo: a topic of orders, its consumer group, and a downstream with a counter."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.tree import Settings
from waitreg.demo.plan import BATCH, MIXTURE
from waitreg.demo.platform import Platform
from waitreg.load.load import LoadPlan, run_load
from waitreg.local.background import Background
from waitreg.reconcile.evidence import read_evidence
from waitreg.reconcile.reconciliation import Reconciliation, reconcile

POLL_S = 0.2
DEADLINE_S = 120.0


@dataclass(slots=True)
class Run:
    """A strategy at one N, with its own topic, group and downstream; the files lie in the platform's folder."""

    platform: Platform
    name: str
    records: int
    settings: Settings
    downstream: Background
    calls: Path
    strategy: str
    kills_ms: list[int] = field(default_factory=list)

    @property
    def topic(self) -> str:
        """Return the input topic."""
        return self.settings.processor.topics[0]

    @property
    def manifest(self) -> Path:
        """Return the list of published records."""
        return self.calls.with_name(f"{self.name}.published.jsonl")

    def publish(self, rate_per_s: float | None = None, stopping: Callable[[], bool] = lambda: False) -> None:
        """Publish the orders; the seed is the run's name, so that no two runs have the same ones."""
        seed = sum(self.name.encode())
        plan = LoadPlan(self.topic, self.records, rate_per_s, seed=seed, manifest=self.manifest)
        run_load(self.settings, plan, stopping=stopping)

    def start_processor(self, name: str) -> Background:
        """Start a processor of the group, or the baseline; not ready yet."""
        if self.strategy == BATCH:
            return self.platform.baseline(name, self.settings)
        return self.platform.service("processor", self.settings, name)

    def completed(self) -> int:
        """Return how many calls the downstream has answered with success."""
        by_status: dict[str, int] = self.downstream.get_json("/stats")["by_status"]
        return by_status.get("200", 0)

    def kill(self, processor: Background) -> None:
        """End a processor of the run with SIGKILL."""
        processor.kill()
        self.kills_ms.append(time.time_ns() // 1_000_000)

    def reconcile(self) -> Reconciliation:
        """Judge the run from outside."""
        return reconcile(read_evidence(self.settings, self.manifest, self.calls, self.kills_ms))


def within_deadline(condition: Callable[[], bool]) -> bool:
    """Poll until the condition holds, for two minutes at most; return whether it came to hold."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def comparison_run(platform: Platform, strategy: str, max_in_flight: int) -> Run:
    """Start the downstream for a run of one strategy at one N."""
    records = platform.plan.records(strategy, max_in_flight)
    mode = {} if strategy == BATCH else {"registration": RegistrationMode(strategy)}
    processor = ProcessorSettings(max_in_flight=max_in_flight, **mode)
    return _run(platform, f"{strategy}-{max_in_flight}", records, processor, strategy)


def crash_run(platform: Platform, name: str, records: int, max_in_flight: int) -> Run:
    """Start the downstream for a run whose processor is killed: one attempt, and records that expire soon."""
    plan = platform.plan
    processor = ProcessorSettings(
        max_in_flight=max_in_flight,
        handler_timeout_s=plan.crash_timeout_s,
        max_attempts=1,
        ttl_s=plan.crash_ttl_s,
        margin_s=plan.crash_margin_s,
    )
    return _run(platform, name, records, processor)


def _run(
    platform: Platform,
    name: str,
    records: int,
    processor: ProcessorSettings,
    strategy: str = RegistrationMode.EAGER.value,
) -> Run:
    calls = platform.directory / f"{name}.calls.jsonl"
    downstream = platform.downstream(MIXTURE, calls, f"downstream-{name}")
    own = {"group": f"demo-{name}", "topics": (f"orders-{name}",), "handler": downstream.address}
    settings = platform.settings_of(processor.model_copy(update=own))
    return Run(platform, name, records, settings, downstream, calls, strategy)
