"""Where runs take place: one broker, one Postgres, each service behind links of its own; each run with fresh names."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.drawing import BACKOFF_S, MARGIN_S, SESSION_TIMEOUT_S, SKEW_ALLOWANCE_S
from tests.chaos.mixture import max_input_bytes
from tests.chaos.schedule import SERVICES, Mood, PlannedFault, Schedule
from tests.chaos.service import HeldPort, Service
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.proxied_stack import ProxiedStack
from tests.support.settings import settings_against
from tests.support.topics import Topics
from wait_registry.demo.environment import as_environment
from wait_registry.kafka.topic_specs import redelivery_topics
from wait_registry.local.ports import LOOPBACK
from wait_registry.local.stack import EmbeddedStack
from wait_registry.settings.root import Settings

ROOT = Path(__file__).parents[2]
MOST = {"processor": 3, "sink": 2, "sweeper": 2}
VISITOR = "visitor-1"
"""The route of processors that come and go in a storm of rebalances."""
ROUTES = (*(f"{kind}-{number}" for kind in SERVICES for number in range(1, MOST[kind] + 1)), VISITOR)
# The second of each kind comes by a listener that asks who one is: an exchange more in which a connection can break.
ASKED_WHO_THEY_ARE = tuple(f"{kind}-2" for kind in SERVICES)

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
    def consumed(self) -> list[str]:
        """Every topic that the group reads: the input, and under the policy ``redeliver`` what comes again."""
        return [self.input, *redelivery_topics(self.settings)]

    @property
    def manifest(self) -> Path:
        """What the load published."""
        return self.directory / "manifest.jsonl"

    @property
    def calls(self) -> Path:
        """What the downstream was asked."""
        return self.directory / "calls.jsonl"

    @property
    def looks(self) -> Path:
        """What was seen from outside while the run continued."""
        return self.directory / "looks.jsonl"


@dataclass(frozen=True, slots=True)
class ScenarioPlayed:
    """What a scenario came to: how many records, what was measured, and what is wrong, in words."""

    records: int
    lines: Sequence[str]
    wrong: Sequence[str]


class Stage:
    """The servers, their links, and what a run needs of them; a context manager."""

    def __init__(self) -> None:
        self._resources = ExitStack()
        self._proxied = ProxiedStack(ROUTES, ASKED_WHO_THEY_ARE, broker_properties=BROKER, postgres_settings=POSTGRES)

    def __enter__(self) -> Stage:
        self._resources.enter_context(self._proxied)
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self._resources.close()

    @property
    def proxied(self) -> ProxiedStack:
        """The links."""
        return self._proxied

    @property
    def stack(self) -> EmbeddedStack:
        """The servers."""
        return self._proxied.stack

    @contextmanager
    def place(self, directory: Path, overrides: Mapping[str, Any], input_partitions: int) -> Iterator[Place]:
        """Make topics, group and schema for one run, and remove them after it.

        Args:
            directory: for its logs and evidence; made here.
            overrides: settings by their dotted names. Without a handler a downstream will be called.
            input_partitions: of the input topic.
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

    def service(self, place: Place, name: str, route: str = "") -> Service:
        """Describe a service of a run, behind its route's links (its name's when none is given)."""
        kind = name.partition("-")[0]
        route = route or name
        reached = {
            "bootstrap_servers": self._proxied.bootstrap_of(route),
            "security": self._proxied.security_of(route),
        }
        kafka = place.settings.kafka.model_copy(update=reached)
        settings = place.settings.model_copy(update={"kafka": kafka})
        variables = as_environment(settings)
        variables["PYTHONPATH"] = str(ROOT)  # where handlers may live
        variables["WAITREG_POSTGRES__URL"] = self._proxied.postgres_url_of(route)
        return Service(name, ["processor" if kind == "visitor" else kind], place.directory, variables)

    def downstream(self, place: Place, mood: Mood) -> Service:
        """Describe the service that the handlers call."""
        port = int(place.settings.processor.handler.rstrip("/").rpartition(":")[2])
        arguments = ["downstream", "--port", str(port), "--log", str(place.calls), "--mixture", mood.mixture]
        return Service("downstream", [*arguments, "--fail", mood.failures], place.directory, {}, "/stats", port)


# What is drawn, by the section of the settings that it belongs to; the rest is the same in all runs.
_DRAWN = {
    "processor": (
        *("max_in_flight", "prefetch_max", "prefetch_max_bytes", "handler_timeout_s", "max_attempts", "ttl_s"),
        *("commit_interval_s", "group_protocol", "assignment_strategy", "expiry_policy", "max_deliveries"),
    ),
    "sink": ("max_batch_records", "max_batch_bytes"),
    "sweeper": ("chunk_rows", "chunk_bytes", "max_tail_records"),
}
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


def settings_of(schedule: Schedule) -> dict[str, Any]:
    """Return the settings of a run, by their dotted names."""
    of_run = schedule.settings
    session = {"session.timeout.ms": SESSION_TIMEOUT_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
    consumer = {} if of_run.group_protocol == "consumer" else session
    return {
        **_FIXED,
        **{f"{section}.{name}": getattr(of_run, name) for section, names in _DRAWN.items() for name in names},
        "kafka.librdkafka": {**consumer, "topic.metadata.refresh.interval.ms": 2000},
        "wait.partitions": of_run.wait_partitions,
        "wait.max_message_bytes": of_run.registration_bytes,
        "processor.http.discard_statuses": of_run.discard_statuses,
    }


@dataclass(frozen=True, slots=True)
class Scene:
    """A run that is going on. Faults of one target come one after the other, by its lock: see `lock`."""

    stage: Stage
    place: Place
    schedule: Schedule
    services: Mapping[str, Service]
    """By name; the visitors of a storm are not among them."""
    downstream: Service
    visitor: Callable[[], Service]
    """Makes one more processor, which nobody supervises."""
    visitors: Sequence[Service]
    """All that were made so far."""
    ended: threading.Event
    """Set when the run is interrupted: whoever waits continues at once."""
    locks: defaultdict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    began_ms: dict[PlannedFault, int] = field(default_factory=dict)
    """When each fault really began, ms since the epoch."""

    def begins(self, fault: PlannedFault) -> None:
        """Note that a fault begins: it has its victim, and nothing was done to that yet. The first word counts."""
        self.began_ms.setdefault(fault, time.time_ns() // 1_000_000)

    def pause(self, seconds: float) -> None:
        """Let the fault last."""
        self.ended.wait(seconds)
