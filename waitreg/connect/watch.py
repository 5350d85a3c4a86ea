"""`waitreg connect watch` as a service: restart connectors that have failed, with metrics and health.

Kafka Connect leaves a failed task FAILED: after an outage of its database a sink would remain stopped until an
operator restarts it.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import click
import psycopg

from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.logs import configure_logging
from wait_registry.outage import Backoff
from wait_registry.postgres.connection import connect_pooled
from wait_registry.postgres.queries import Queries
from wait_registry.service.health import Health
from wait_registry.service.process import ServiceProcess
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.sweeper import SweeperKind
from wait_registry.settings.tree import Settings
from wait_registry.telemetry import metrics as m
from wait_registry.telemetry.exposition import MetricsRegistry, Reading
from wait_registry.telemetry.server import service_server
from waitreg.command import Command, Invocation
from waitreg.connect.lag import sink_lags
from waitreg.connect.rest import ConnectRest, WorkerUnavailable
from waitreg.connect.state import STATES, ConnectorState, choose

log = logging.getLogger(__name__)

QUERIES: Final = Queries("connect")
# What a due registration lacks, and whether its dead letter is looked for, which may pass over many rows.
_UNEXPORTED: Final = {"tombstone": False, "dead_letter": True}


@click.command("watch", cls=Command, examples=("waitreg connect watch --set telemetry.port=9467",))
@click.pass_obj
def command(invocation: Invocation) -> int:
    """Run a service that restarts failed connectors.

    Kafka Connect itself never restarts a failed task, for instance after an outage of Postgres. The watch restarts it
    at once, then after growing pauses. Metrics and health are at the telemetry port, as for the other services. With
    sweeper.kind=connect it also reads from Postgres how long expired registrations have been waiting. Watches
    connect.connectors, or the connectors of this project that the workers have.
    """
    settings = invocation.settings()
    configure_logging(settings.log, "connect-watch")
    ServiceProcess(lambda: WatchService(settings)).run()
    return 0


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found and did.

    ``trouble`` is why the worker couldn't be asked, None when it could. ``connectors`` are those watched that exist,
    ``missing`` those that should exist, ``restarted`` those restarted now.
    """

    trouble: str | None = None
    connectors: tuple[ConnectorState, ...] = ()
    missing: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    lags: Mapping[str, int] = field(default_factory=dict)

    def reasons(self) -> list[str]:
        """Return why nothing is watched, nothing if something is; a connector that fails has metrics of its own."""
        if self.trouble is not None:
            return [self.trouble]
        if not self.connectors and not self.missing:
            return ["no connector to watch: create them (connect-configs/README.md); connect.connectors names others"]
        return [f"connector {name} doesn't exist: create it, or correct connect.connectors" for name in self.missing]


class WatchService:
    """One watcher, which continues while no worker answers; several do no harm, they only restart more often."""

    def __init__(self, settings: Settings) -> None:
        """Check the settings; nothing is asked yet.

        Raises:
            ConfigurationError: settings contradict each other.
        """
        self._settings = settings
        self._rest = ConnectRest(settings.connect)
        self._stop = threading.Event()
        self._let_in = False
        self._pauses: dict[str, Backoff] = {}
        self._next_restart_s: dict[str, float] = {}
        self._said: dict[str, str] = {}
        self._look = Look("the first look has not ended yet")
        # How long registrations have been due, and why this isn't known; None while nothing was asked.
        self._due: tuple[Mapping[str, float], str | None] | None = None
        self._registry = MetricsRegistry()
        self._restarted = self._registry.counter(m.CONNECT_RESTARTS)

    def run(self) -> None:
        """Look until `request_stop`.

        Raises:
            ConfigurationError: as `run_once`.
        """
        connect = self._settings.connect
        self._registry.collect_from(self._readings)
        with service_server(self._settings, "connect", self._registry, lambda: Health(True), self.ready) as server:
            log.info("watching %s every %g s, metrics on port %d", connect.url, connect.watch_interval_s, server.port)
            self.run_once()
            while not self._stop.wait(connect.watch_interval_s):
                self.run_once()

    def request_stop(self) -> None:
        """Ask `run` to end; from any thread."""
        self._stop.set()

    def ready(self) -> Health:
        """Return whether connectors are watched."""
        return Health.of(self._look.reasons())

    def run_once(self) -> Look:
        """Look at every connector, and restart what has failed and may be restarted now.

        Returns:
            What was found. If a worker doesn't answer, or refuses us after it has let us in before, that is part of
            it: workers are restarted and reconfigured.

        Raises:
            ConfigurationError: the worker refuses us and always has: wrong credentials, a certificate that isn't
                trusted, the address of something else. Fix what the message names.
        """
        try:
            self._look = self._look_at_connectors()
        except (WorkerUnavailable, ConfigurationError) as error:
            if isinstance(error, ConfigurationError) and not self._let_in:
                raise
            self._look = Look(str(error))
            self._say("worker", logging.WARNING, f"{error}; it is asked again")
        if self._settings.sweeper.kind is SweeperKind.CONNECT:
            self._due = oldest_due(self._settings)
            self._say("due", logging.WARNING, self._due[1] or "")
        return self._look

    def _look_at_connectors(self) -> Look:
        self._rest.require_healthy()
        present, missing = choose(self._rest.states(), self._settings.connect.connectors)
        self._let_in = True
        restarted = tuple(state.name for state in present if state.to_restart and self._restart(state))
        lags, trouble = sink_lags(self._settings.kafka, present)
        self._say("lags", logging.WARNING, trouble or "")
        for state in present:
            self._restarted.labels(state.name).inc(state.name in restarted)  # there with 0, so that the first one shows
        look = Look(None, tuple(present), tuple(missing), restarted, lags)
        self._say("worker", logging.INFO, "the worker answers")
        self._say("missing", logging.WARNING, "; ".join(look.reasons()))
        return look

    def _restart(self, state: ConnectorState) -> bool:
        connect, now_s = self._settings.connect, time.monotonic()
        if now_s < self._next_restart_s.get(state.name, now_s):
            return False
        try:
            self._rest.restart_failed(state.name)
        except (WorkerUnavailable, ConfigurationError) as error:
            # The next look tries again, and what else this one did still counts.
            log.warning("%s can't be restarted: %s", state.name, error)
            return False
        first_s, longest_s = connect.restart_backoff_s, connect.restart_backoff_max_s
        pauses = self._pauses.setdefault(state.name, Backoff(first_s, longest_s, random.random, longest_s))
        self._next_restart_s[state.name] = now_s + pauses.next_s()
        log.warning("restarted %s; it had failed: %s", state.name, "; ".join(state.failures()))
        return True

    def _say(self, subject: str, level: int, sentence: str) -> None:
        """Log a sentence unless it was the last one about this subject; an empty one is only remembered."""
        if sentence and sentence != self._said.get(subject):
            log.log(level, "%s", sentence)
        self._said[subject] = sentence

    def _readings(self) -> Iterator[Reading]:
        look = self._look
        yield Reading(m.CONNECT_UP, float(look.trouble is None))
        yield Reading(m.CONNECT_KEEPS_TABLES, float(self._settings.sink.kind is SinkKind.CONNECT))
        yield Reading(m.CONNECT_EXPORTS, float(self._settings.sweeper.kind is SweeperKind.CONNECT))
        if self._due is not None:
            ages_s, trouble = self._due
            yield Reading(m.CONNECT_POSTGRES_UP, float(trouble is None))
            yield from (Reading(m.CONNECT_OLDEST_DUE, age_s, (lacks,)) for lacks, age_s in ages_s.items())
        for state in look.connectors:
            yield Reading(m.CONNECT_RUNNING, float(state.runs), (state.name,))
            counted = Counter(task.state.lower() for task in state.tasks)
            for word in dict.fromkeys((*STATES, *counted)):
                yield Reading(m.CONNECT_TASKS, counted[word], (state.name, word))
        yield from (Reading(m.CONNECT_RUNNING, 0, (name,)) for name in look.missing)
        yield from (Reading(m.CONNECT_SINK_LAG, lag, (name,)) for name, lag in look.lags.items())


def oldest_due(settings: Settings) -> tuple[dict[str, float], str | None]:
    """Ask Postgres for how long (s) the oldest has been due that lacks its tombstone, or its dead letter.

    Returns:
        The ages by what is lacking; one that takes longer than postgres.connect_timeout_s to find is missing. And why
        Postgres couldn't be asked, None when it answered.
    """
    found: dict[str, float] = {}
    question = {"topic": settings.wait.topic, "skew_s": settings.wait.skew_allowance_s}
    try:
        limit_s, name = settings.postgres.connect_timeout_s, "waitreg connect watch"
        with connect_pooled(settings.postgres, application_name=name, statement_timeout_s=limit_s) as connection:
            for lacks, unexported in _UNEXPORTED.items():
                asked = {**question, "unexported": unexported}
                try:
                    with connection.transaction():
                        rows = connection.execute(QUERIES["oldest_due"], asked).fetchall()
                except psycopg.errors.QueryCanceled:
                    continue
                found[lacks] = float(rows[0][0])
    except (WaitRegistryError, psycopg.Error) as error:
        return {}, f"the due registrations are unknown: {' '.join(str(error).split())}"
    return found, None
