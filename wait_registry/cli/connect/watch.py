"""Keeping connectors running: a look at the workers, a restart of what has failed, over and over.

Kafka Connect leaves a failed task FAILED: after an outage of its database a sink would remain stopped until an
operator restarts it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wait_registry.cli.connect.rest import ConnectRest, SecretUnreadable, WorkerUnavailable
from wait_registry.cli.connect.state import Chosen, ConnectorState
from wait_registry.errors import ConfigurationError
from wait_registry.retry import backoff_s
from wait_registry.settings.connect import ConnectSettings


@dataclass(frozen=True, slots=True)
class RestartRules:
    """Pauses in s: the first, the longest; and the pace at which it ends, a number of restarts per window of s."""

    first_s: float
    longest_s: float
    limit: int
    window_s: float

    @classmethod
    def of(cls, settings: ConnectSettings) -> RestartRules:
        """Take them from the settings."""
        return cls(
            settings.restart_backoff_s,
            settings.restart_backoff_max_s,
            settings.restart_limit,
            settings.restart_window_s,
        )

    @property
    def apart_s(self) -> float:
        """How far apart restarts are at the limit, s."""
        return self.window_s / self.limit


class Restarts:
    """The restarts of one connector. Pure: every method takes the time, in s of a clock that never steps.

    The limit is a pace, not a number that no window exceeds. Up to ``limit`` restarts come as their growing pauses
    allow, since most failures pass soon. When the window that ends now has seen ``limit`` of them, the next is
    ``window / limit``
    after the last: a connector that fails all the time is restarted ``limit`` times a window, evenly, and never waits
    longer than that for a restart that may help. So no window of that length, wherever it begins, sees twice the limit:
    at most ``limit`` quick ones and ``limit - 1`` at the pace.
    """

    def __init__(self, rules: RestartRules) -> None:
        self._rules = rules
        self._times: deque[float] = deque()

    def note(self, now_s: float) -> None:
        """Take down a restart."""
        self._times.append(now_s)

    def within_window(self, now_s: float) -> int:
        """Return how many there were within the window that ends now."""
        while self._times and self._times[0] <= now_s - self._rules.window_s:
            self._times.popleft()
        return len(self._times)

    def limit_reached(self, now_s: float) -> bool:
        """Return whether restarts don't help and an operator must look.

        It begins with the restart that reaches the limit, and ends when the connector has needed none for twice the
        time that they are apart then, or the window has seen fewer.
        """
        failing = self.within_window(now_s) >= self._rules.limit
        return failing and now_s < self._times[-1] + 2 * self._rules.apart_s

    def due(self, now_s: float) -> bool:
        """Return whether the next restart may be now."""
        count = self.within_window(now_s)
        return count == 0 or now_s >= self._times[-1] + self._pause_s(count)

    def _pause_s(self, count: int) -> float:
        rules = self._rules
        if count >= rules.limit:
            return rules.apart_s
        return backoff_s(count, rules.first_s, rules.longest_s)


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found and did.

    ``trouble`` is why the worker couldn't be asked, None when it could. ``connectors`` are those watched and there,
    ``missing`` those that should be, ``restarted`` those restarted now, ``at_limit`` those whose restarts don't help.
    """

    trouble: str | None = None
    connectors: tuple[ConnectorState, ...] = ()
    missing: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    at_limit: tuple[str, ...] = ()

    def reasons(self) -> list[str]:
        """Return why nothing is watched over, nothing when it is; a connector that fails has metrics of its own."""
        if self.trouble is not None:
            return [self.trouble]
        if not self.connectors and not self.missing:
            return ["no connector to watch: `waitreg connect apply` makes them, connect.connectors names others"]
        return [f"connector {name} is not there: `waitreg connect apply` makes it" for name in self.missing]


class Watch:
    """The looks at one cluster of workers; several watchers do no harm, they only restart more often."""

    def __init__(
        self, rest: ConnectRest, named: Sequence[str], rules: RestartRules, monotonic: Callable[[], float]
    ) -> None:
        """Describe what is watched.

        Args:
            rest: a worker.
            named: connectors to watch; this project's own, as far as they are there, when empty.
            rules: how often each may be restarted.
            monotonic: s of a clock that never steps.
        """
        self._rest = rest
        self._named = tuple(named)
        self._rules = rules
        self._monotonic = monotonic
        self._restarts: dict[str, Restarts] = {}
        self._let_in = False
        self._trouble: str | None = None
        self._answered = Look()

    def run_once(self) -> Look:
        """Look at every connector, and restart what has failed and may be restarted now.

        Returns:
            What was found; a worker that doesn't answer is part of it, and one that refuses us after it has let us in
            before: workers are restarted and reconfigured.

        Raises:
            ConfigurationError: the worker refuses us and always has: wrong credentials, a certificate that isn't
                trusted, an address that is no worker's. Fix what the message names.
        """
        try:
            self._rest.require_healthy()
            chosen = Chosen.of(self._rest.states(), self._named)
            self._let_in = True
            restarted = tuple(state.name for state in chosen.present if state.to_restart and self._restart(state))
        except (WorkerUnavailable, ConfigurationError) as error:
            if isinstance(error, ConfigurationError) and not self._let_in:
                raise
            return self._noted(Look(str(error)))
        now = self._monotonic()
        at_limit = tuple(name for name, restarts in self._restarts.items() if restarts.limit_reached(now))
        return self._noted(Look(None, chosen.present, chosen.missing, restarted, at_limit))

    def _restart(self, state: ConnectorState) -> bool:
        restarts = self._restarts.setdefault(state.name, Restarts(self._rules))
        if not restarts.due(self._monotonic()) or not self._restarted(state.name):
            return False
        restarts.note(self._monotonic())
        log.warning("restarted %s; it had failed: %s", state.name, "; ".join(state.failures()))
        return True

    def _restarted(self, name: str) -> bool:
        try:
            return self._rest.restart_failed(name)
        except WorkerUnavailable as error:
            # Tried again at the next look; what else this one did still counts.
            log.info("%s could not be restarted now: %s", name, error)
        except SecretUnreadable as error:
            log.warning("%s can't be restarted: %s", name, error)
        return False

    def _noted(self, look: Look) -> Look:
        """Log what has changed since the last look, or since the last one that was answered."""
        if (look.trouble is None) != (self._trouble is None):
            log.warning("%s", f"{look.trouble}; it is asked again" if look.trouble else "the worker answers again")
        self._trouble = look.trouble
        if look.trouble is None:
            self._log_changes(self._answered, look)
            self._answered = look
        return look

    def _log_changes(self, before: Look, now: Look) -> None:
        running = {state.name: state.runs for state in before.connectors}
        for state in now.connectors:
            # Of one that was restarted just now it has been said how it was.
            if state.runs != running.get(state.name) and state.name not in now.restarted:
                level = logging.INFO if state.runs or state.held else logging.WARNING
                log.log(level, "%s is %s", state.name, state.in_words())
        for name in sorted(running.keys() - {state.name for state in now.connectors}):
            log.warning("connector %s has been removed", name)
        for name in sorted(set(now.missing) - set(before.missing)):
            log.warning("connector %s is not there: `waitreg connect apply` makes it", name)
        for name in sorted(set(now.at_limit) - set(before.at_limit)):
            log.error(
                "%s fails as often as it is restarted, %d times within %g s: the cause must be fixed. It is restarted "
                "further, every %g s",
                *(name, self._rules.limit, self._rules.window_s, self._rules.apart_s),
            )
