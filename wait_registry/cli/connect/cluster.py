"""The connectors of a cluster of workers: validated, created or changed, and waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from wait_registry.cli.connect.connector_file import Connector
from wait_registry.cli.connect.rest import ConnectRest, WorkerBusy
from wait_registry.cli.connect.roles import exports
from wait_registry.cli.connect.state import ConnectorState
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.errors import ConfigurationError

POLL_S: Final = 0.25
# A connector that was changed shows its former state for a moment.
STEADY_S: Final = 2.0

T = TypeVar("T")
Report = Callable[[str, str, str], None]


class Pace(Protocol):
    """What waiting is done with."""

    def monotonic(self) -> float:
        """Return s of a clock that never steps."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class ConnectCluster:
    """Brings connectors to what their files say; a second time changes nothing.

    Every method raises WorkerUnavailable if no worker answers, and ConfigurationError if one refuses us.
    """

    def __init__(self, rest: ConnectRest, timeout_s: float, report: Report, pace: Pace = time) -> None:
        """Ask nothing yet.

        Args:
            rest: the workers.
            timeout_s: limit for connectors to start, and for a rebalance of the workers to end, s.
            report: gets what was done, to which connector, and details, as it happens.
            pace: clock and sleep.
        """
        self._rest = rest
        self._timeout_s = timeout_s
        self._report = report
        self._pace = pace

    def require_valid(self, connectors: Sequence[Connector]) -> None:
        """Have the connectors' classes validate all configurations; nothing is changed.

        Raises:
            ConfigurationError: a class refuses its configuration.
        """
        refused: list[str] = []
        for connector in connectors:
            config = {"name": connector.name, **connector.config}
            errors = self._ask(partial(self._rest.validate, connector.connector_class, config))
            refused += [f"{connector.name} ({connector.origin}): {error}" for error in errors]
        if refused:
            raise ConfigurationError("\n".join(["nothing was changed; the connectors' classes refuse:", *refused]))

    def new_exporters(self, connectors: Sequence[Connector]) -> list[Connector]:
        """Return those that export and don't exist yet: they must find tables that are up to date."""
        sources = [connector for connector in connectors if exports(connector.config)]
        return [source for source in sources if self._ask(partial(self._rest.config, source.name)) is None]

    def states(self) -> dict[str, ConnectorState]:
        """Return all connectors of the workers, by name."""
        return self._ask(self._rest.states)

    def put(self, connectors: Sequence[Connector]) -> list[ConnectorState]:
        """Create or change them, and wait until each runs, has failed, or is held by an operator; validate them before.

        Returns:
            Their states then, in the same order.
        """
        for connector in connectors:
            self._put(connector)
        return self._settled([connector.name for connector in connectors])

    def _put(self, connector: Connector) -> None:
        name = connector.name
        before = self._ask(partial(self._rest.config, name))
        changed = None if before is None else changed_properties(before, connector.config)
        if changed is None or changed:
            self._ask(partial(self._rest.put, name, connector.config))
            word, details = ("created", connector.origin) if changed is None else ("changed", ", ".join(changed))
            self._report(word, name, details)
            return
        self._report("unchanged", name, connector.origin)
        state = self.states().get(name)
        if state is not None and state.to_restart:
            self._ask(partial(self._rest.restart_failed, name))
            self._report("restarted", name, "; ".join(state.failures()))

    def _settled(self, names: Sequence[str]) -> list[ConnectorState]:
        since = self._pace.monotonic()
        deadline = since + self._timeout_s
        seen: tuple[ConnectorState | None, ...] = ()
        while True:
            states = self.states()
            found = tuple(states.get(name) for name in names)
            now = self._pace.monotonic()
            if found != seen:
                seen, since = found, now
            if now > deadline or (now - since >= STEADY_S and all(map(_is_settled, found))):
                return [state or ConnectorState.unknown(name) for name, state in zip(names, found, strict=True)]
            self._pace.sleep(POLL_S)

    def _ask(self, ask: Callable[[], T]) -> T:
        deadline = self._pace.monotonic() + self._timeout_s
        while True:
            try:
                return ask()
            except WorkerBusy:
                if self._pace.monotonic() > deadline:
                    raise
                self._pace.sleep(POLL_S)


def changed_properties(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the properties in which two configurations differ, except the name, which the worker adds. Pure."""
    return sorted({key for key, _ in set(before.items()) ^ set(after.items())} - {"name"})


def outcome(state: ConnectorState) -> Diagnosis:
    """Judge a connector that was applied; one that an operator has paused or stopped stays so. Pure."""
    if state.runs:
        workers = sorted({task.worker for task in state.tasks})
        return Diagnosis(state.name, Severity.OK, f"{state.in_words()} at {', '.join(workers)}")
    if state.failed:
        return Diagnosis(state.name, Severity.ERROR, f"failed: {'; '.join(state.failures())}")
    if state.held:
        fix = f"PUT /connectors/{state.name}/resume of the REST API resumes it"
        return Diagnosis(state.name, Severity.WARNING, f"{state.state} by an operator, and stays so", fix)
    fix = "`waitreg connect status` shows its state"
    return Diagnosis(state.name, Severity.ERROR, f"doesn't run: {state.in_words()}", fix)


def _is_settled(state: ConnectorState | None) -> bool:
    return state is not None and (state.runs or state.failed or state.held)
