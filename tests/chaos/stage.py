"""Where runs take place: one broker, one Postgres, each service behind links of its own; each run with fresh names."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.chaos.history.history import Concerned
from tests.chaos.history.watch import Tap
from tests.chaos.mixture import max_input_bytes
from tests.chaos.schedule import (
    BACKOFF_S,
    MARGIN_S,
    SERVICES,
    SESSION_TIMEOUT_S,
    SKEW_ALLOWANCE_S,
    PlannedFault,
    Schedule,
)
from tests.chaos.service import HeldPort, Service
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.proxied_stack import ProxiedStack
from tests.support.settings import settings_against
from tests.support.topics import Topics
from wait_registry.settings.tree import Settings
from waitreg.local.environment import as_environment
from waitreg.local.ports import LOOPBACK
from waitreg.local.stack import EmbeddedStack

ROOT = Path(__file__).parents[2]
MOST = {"processor": 3, "sink": 2, "sweeper": 2}
VISITOR = "visitor-1"
"""The route of processors that come and go in a storm of rebalances."""
ROUTES = (*(f"{kind}-{number}" for kind in SERVICES for number in range(1, MOST[kind] + 1)), VISITOR)
# The second of each kind logs in to the broker: an exchange more in which a connection can break.
WITH_LOGIN = tuple(f"{kind}-2" for kind in SERVICES)

SESSION_TIMEOUT_MS = int(SESSION_TIMEOUT_S * 1000)
HEARTBEAT_MS = 500
BROKER = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "num.network.threads": "1",
}
# What a process kill can't take need not be flushed: the machine doesn't crash.
POSTGRES = {"fsync": "off"}
# The settings of all runs; the others are drawn.
_FIXED = {
    "wait.skew_allowance_s": SKEW_ALLOWANCE_S,
    "processor.backoff_initial_s": BACKOFF_S,
    "processor.margin_s": MARGIN_S,
    "processor.drain_timeout_s": 5,
    "processor.flush_timeout_s": 3,
    "sink.poll_interval_s": 0.5,
    "sink.restart_backoff_max_s": 2,
    "sink.idle_progress_s": 2,
    "sweeper.interval_s": 1,
    "sweeper.transaction_timeout_ms": 5000,
    "sweeper.tail_timeout_s": 10,
}


@dataclass(frozen=True, slots=True)
class Place:
    """What a run has for itself: settings without any link, topics, files."""

    settings: Settings
    directory: Path
    topics: Topics
    database: Database

    @property
    def input(self) -> str:
        """The input topic."""
        return self.settings.processor.topics[0]

    @property
    def manifest(self) -> Path:
        """What the load generator has published."""
        return self.directory / "manifest.jsonl"

    @property
    def calls(self) -> Path:
        """What the downstream was asked."""
        return self.directory / "calls.jsonl"


class Stage:
    """The servers, their links, and what a run needs of them; a context manager."""

    def __init__(self) -> None:
        self.proxied = ProxiedStack(ROUTES, WITH_LOGIN, broker_properties=BROKER, postgres_settings=POSTGRES)

    def __enter__(self) -> Self:
        self.proxied.__enter__()
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self.proxied.close()

    @property
    def stack(self) -> EmbeddedStack:
        """The servers."""
        return self.proxied.stack

    @contextmanager
    def place(self, directory: Path, overrides: Mapping[str, Any], input_partitions: int) -> Iterator[Place]:
        """Make topics, group and schema for one run, and remove them after it.

        ``overrides`` are settings by their dotted names. Without a handler a downstream will be called.
        """
        directory.mkdir(parents=True)
        port = HeldPort()
        calls = {"processor.handler": f"http://{LOOPBACK}:{port.number}/"}
        settings = settings_against(
            self.stack.bootstrap_servers, self.stack.postgres_url, Names(), {**calls, **overrides}
        )
        topics, database = Topics(self.stack.bootstrap_servers), Database(self.stack.postgres_url)
        try:
            limit = str(max_input_bytes(settings.wait.max_message_bytes))
            topics.create(settings.processor.topics[0], input_partitions, max__message__bytes=limit)
            topics.create_own(settings)
            database.install(settings)
            yield Place(settings, directory, topics, database)
        finally:
            topics.close()
            database.close()
            port.release()

    def service(self, place: Place, name: str, route: str = "", modes: Sequence[str] = ()) -> Service:
        """Describe a service of a run, behind its route's links (its name's when none is given).

        A processor's starts have these registration modes, one after the other; that of the settings without.
        """
        kind, route = name.partition("-")[0], route or name
        reached = {"bootstrap_servers": self.proxied.bootstrap_of(route), "security": self.proxied.security_of(route)}
        kafka = place.settings.kafka.model_copy(update=reached)
        variables = as_environment(place.settings.model_copy(update={"kafka": kafka}))
        # Where handlers may live, after what removes a safeguard (tests/safeguards).
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(ROOT))))
        variables["WAITREG_POSTGRES__URL"] = self.proxied.postgres_url_of(route)
        arguments = ["processor" if kind == "visitor" else kind]
        return Service(name, arguments, place.directory, variables, modes=modes if arguments == ["processor"] else ())

    def downstream(self, place: Place, latencies: str, failures: str) -> Service:
        """Describe the service that the handlers call."""
        port = int(place.settings.processor.handler.rstrip("/").rpartition(":")[2])
        arguments = ["downstream", "--port", str(port), "--log", str(place.calls), "--mixture", latencies]
        return Service("downstream", [*arguments, "--fail", failures], place.directory, {}, "/stats", port)


def settings_of(schedule: Schedule) -> dict[str, Any]:
    """Return the settings of a run, by their dotted names."""
    session = {"session.timeout.ms": SESSION_TIMEOUT_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
    consumer = {} if schedule.settings["processor.group_protocol"] == "consumer" else session
    return {**_FIXED, **schedule.settings, "kafka.librdkafka": {**consumer, "topic.metadata.refresh.interval.ms": 2000}}


@dataclass(frozen=True, slots=True)
class Scene:
    """A run in progress. A fault holds the locks of its targets, so that other faults of these wait."""

    stage: Stage
    place: Place
    schedule: Schedule
    services: Mapping[str, Service]
    """By name; the visitors of a storm are not among them."""
    downstream: Service
    visitor: Callable[[], Service]
    """Makes one more processor, which isn't supervised."""
    visitors: Sequence[Service]
    """All that were made so far."""
    tap: Tap
    """Reads what operators delete."""
    ended: threading.Event
    """Set when the run is interrupted: pauses end at once."""
    began_ms: dict[PlannedFault, int] = field(default_factory=dict)
    """When each fault really began, ms since the epoch."""
    concerned: dict[PlannedFault, list[Concerned]] = field(default_factory=dict)
    """The records that each operator's action concerns."""
    _locks: defaultdict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def lock_of(self, target: str) -> threading.Lock | Any:
        """Return the lock of a service, a server, a link, a group or a topic."""
        service = self.downstream if target == "downstream" else self.services.get(target)
        return self._locks[target] if service is None else service.lock

    def begins(self, fault: PlannedFault) -> None:
        """Note that a fault begins: it has its victim, and nothing happened to that yet. The first time counts."""
        self.began_ms.setdefault(fault, time.time_ns() // 1_000_000)

    def pause(self, seconds: float) -> None:
        """Let the fault last."""
        self.ended.wait(seconds)
