"""Evaluates the rules now and then, and sends what is due: the state of all alerts, and their metrics."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from pydantic import SecretStr

from sweeper.alerts.counting import Counting, Counts
from sweeper.alerts.forms import json_of
from sweeper.alerts.notice import TROUBLE, notice_of
from sweeper.alerts.state import Alert, Message, Phase
from sweeper.alerts.webhook import Undelivered, post
from sweeper.periods import COUNT_PAUSE_S, pause_after
from wait_registry.outage import Backoff
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.repeats import Failures
from wait_registry.settings.alerts import AlertRule
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.exposition import MetricsRegistry, Reading, Readings
from wait_registry.telemetry.metrics import ALERTS_DELIVERIES, ALERTS_EVALUATED, ALERTS_FIRING

log = logging.getLogger(__name__)

# A receiver that doesn't take a message is tried again with the next evaluation, and later more rarely.
LONGEST_PAUSE_S: Final = 300.0


class AlertWatch:
    """All alerts of one sweeper. They are in its memory alone: after a restart, each that is due fires again."""

    def __init__(
        self,
        settings: Settings,
        connections: OpenConnections,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Open nothing yet.

        Args:
            settings: the rules and where their messages go; and where Postgres is.
            connections: those of the service, to be given up with it.
            now: wall clock, s since the epoch.
            monotonic: clock of the pauses after failures, s.

        Raises:
            ConfigurationError: a rule has a condition that can't be read.
        """
        self._alerting = settings.alerts
        self._connections = connections
        self._counting = Counting(settings, connections)
        self._now, self._monotonic = now, monotonic
        self._rules: tuple[AlertRule, ...] = (TROUBLE, *settings.alerts.rule)
        self._alerts = {rule.name: Alert() for rule in self._rules}
        self._evaluated_s = 0.0
        self._problems = Failures(log, "all alert rules are evaluated again", monotonic)
        self._deliveries = dict.fromkeys((result for (result,) in ALERTS_DELIVERIES.known), 0)
        self._backoff = Backoff(COUNT_PAUSE_S, LONGEST_PAUSE_S, random.random)
        self._refusals = Failures(log, "the receiver of alerts takes messages again", monotonic)
        self._next_try_s = monotonic()

    def expose(self, registry: MetricsRegistry) -> None:
        """Show which alerts fire, when they were evaluated, and what became of their messages."""
        registry.collect_from(self._show)

    def run_once(self) -> float:
        """Evaluate all rules, and send what is due; a failure is reported, and tried again the next time.

        Returns:
            The pause until they are to be evaluated again, s.
        """
        began_s, now_s = time.monotonic(), self._now()
        counts = self._counting.counts(datetime.fromtimestamp(now_s, UTC))
        took_s = time.monotonic() - began_s
        self._observe(counts, now_s)
        if self._monotonic() >= self._next_try_s:
            self._deliver()
        return pause_after(took_s)

    def close(self) -> None:
        """Leave the alerts to another sweeper."""
        self._counting.close()

    def _observe(self, counts: Counts | None, now_s: float) -> None:
        if counts is None:
            self._forget(now_s)
            return
        missing = len(self._alerting.rule) - len(counts.by_rule)
        if not missing:
            self._evaluated_s = now_s
        if not counts.problem:
            self._problems.end()
        elif not self._connections.given_up and self._problems.is_news(counts.problem):
            log.warning("alert rules can't be evaluated, and are tried again: %s", counts.problem)
        seen = {**counts.by_rule, TROUBLE.name: max(missing, int(bool(counts.problem)))}
        for rule in self._rules:
            if rule.name in seen:
                self._alerts[rule.name] = self._alerts[rule.name].observed(rule, seen[rule.name], now_s)

    def _forget(self, now_s: float) -> None:
        """Leave the rules to the sweeper that evaluates; that this one couldn't is over, and is still reported."""
        trouble = self._alerts[TROUBLE.name].observed(TROUBLE, 0, now_s)
        self._alerts = {rule.name: Alert() for rule in self._rules} | {TROUBLE.name: trouble}
        self._problems.end()

    def _deliver(self) -> None:
        """Send each message that is due, once; a receiver that doesn't answer isn't asked to take the others."""
        refused: Undelivered | None = None
        for rule in self._rules:
            message = self._alerts[rule.name].due(rule, self._now())
            if message is None:
                continue
            problem = self._send(rule, message)
            self._deliveries["delivered" if problem is None else "failed"] += 1
            if problem is None:
                self._alerts[rule.name] = self._alerts[rule.name].delivered(message, self._now())
                continue
            refused = problem
            if not problem.answered:
                break
        self._note(refused)

    def _send(self, rule: AlertRule, message: Message) -> Undelivered | None:
        webhook = self._alerting.webhook
        body = json_of(webhook.form, notice_of(rule, message, self._alerting.console_url))
        return post(webhook.url or SecretStr(""), body, webhook.timeout_s)

    def _note(self, refused: Undelivered | None) -> None:
        """Plan the next try."""
        if refused is None:
            self._refusals.end()
            self._backoff.reset()
            return
        self._next_try_s = self._monotonic() + self._backoff.next_s()
        if self._refusals.is_news(refused.reason):
            log.warning("an alert can't be delivered, and is tried again: %s", refused.reason)

    def _show(self) -> Readings:
        yield Reading(ALERTS_EVALUATED, self._evaluated_s)
        for name, alert in self._alerts.items():
            yield Reading(ALERTS_FIRING, float(alert.phase is Phase.FIRING), (name,))
        for result, count in self._deliveries.items():
            yield Reading(ALERTS_DELIVERIES, float(count), (result,))
