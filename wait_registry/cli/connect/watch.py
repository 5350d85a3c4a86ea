"""Restart connectors that have failed.

Kafka Connect leaves a failed task FAILED: after an outage of its database a sink would remain stopped until an
operator restarts it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from wait_registry.cli.connect.rest import ConnectRest, SecretUnreadable, WorkerUnavailable
from wait_registry.cli.connect.restarts import Restarts
from wait_registry.cli.connect.state import Chosen, ConnectorState
from wait_registry.errors import ConfigurationError
from wait_registry.settings.connect import ConnectSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Look:
    """What one look found and did.

    ``trouble`` is why the worker couldn't be asked, None when it could. ``connectors`` are those watched that exist,
    ``missing`` those that should exist, ``restarted`` those restarted now, ``at_limit`` those whose restarts don't
    help.
    """

    trouble: str | None = None
    connectors: tuple[ConnectorState, ...] = ()
    missing: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    at_limit: tuple[str, ...] = ()

    def reasons(self) -> list[str]:
        """Return why nothing is watched, nothing if something is; a connector that fails has metrics of its own."""
        if self.trouble is not None:
            return [self.trouble]
        if not self.connectors and not self.missing:
            return ["no connector to watch: `waitreg connect apply` creates them, connect.connectors names others"]
        return [_missing(name) for name in self.missing]


class Watch:
    """The looks at one cluster of workers; several watchers do no harm, they only restart more often."""

    def __init__(self, rest: ConnectRest, settings: ConnectSettings, monotonic: Callable[[], float]) -> None:
        """Ask nothing yet.

        Args:
            rest: the workers.
            settings: which connectors are watched, and how often each may be restarted.
            monotonic: s of a clock that never steps.
        """
        self._rest = rest
        self._settings = settings
        self._monotonic = monotonic
        self._restarts: dict[str, Restarts] = {}
        self._let_in = False
        self._trouble: str | None = None
        self._answered = Look()

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
            self._rest.require_healthy()
            chosen = Chosen.of(self._rest.states(), self._settings.connectors)
            self._let_in = True
            restarted = tuple(state.name for state in chosen.present if state.to_restart and self._restart(state))
        except (WorkerUnavailable, ConfigurationError) as error:
            if isinstance(error, ConfigurationError) and not self._let_in:
                raise
            return self._logged(Look(str(error)))
        now = self._monotonic()
        at_limit = tuple(name for name, restarts in self._restarts.items() if restarts.limit_reached(now))
        return self._logged(Look(None, chosen.present, chosen.missing, restarted, at_limit))

    def _restart(self, state: ConnectorState) -> bool:
        restarts = self._restarts.setdefault(state.name, Restarts(self._settings))
        if not restarts.due(self._monotonic()):
            return False
        try:
            if not self._rest.restart_failed(state.name):
                return False
        except WorkerUnavailable as error:
            # The next look tries again, and what else this one did still counts.
            log.info("%s could not be restarted now: %s", state.name, error)
            return False
        except SecretUnreadable as error:
            log.warning("%s can't be restarted: %s", state.name, error)
            return False
        restarts.note(self._monotonic())
        log.warning("restarted %s; it had failed: %s", state.name, "; ".join(state.failures()))
        return True

    def _logged(self, look: Look) -> Look:
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
            # The line of the restart has the state of one that was restarted now.
            if state.runs != running.get(state.name) and state.name not in now.restarted:
                level = logging.INFO if state.runs or state.held else logging.WARNING
                log.log(level, "%s is %s", state.name, state.in_words())
        for name in sorted(running.keys() - {state.name for state in now.connectors}):
            log.warning("connector %s has been removed", name)
        for name in sorted(set(now.missing) - set(before.missing)):
            log.warning("%s", _missing(name))
        for name in sorted(set(now.at_limit) - set(before.at_limit)):
            log.error(
                "%s fails as often as it is restarted, %d times within %g s: the cause must be fixed. It is restarted "
                "further, every %g s",
                *(name, self._settings.restart_limit, self._settings.restart_window_s, self._restarts[name].apart_s),
            )


def _missing(name: str) -> str:
    return f"connector {name} doesn't exist: `waitreg connect apply` creates it"
