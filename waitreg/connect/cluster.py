"""The connectors of a cluster of workers: validated, created or changed, and waited for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.errors import ConfigurationError
from waitreg.connect.connector_file import Connector
from waitreg.connect.rest import ConnectRest
from waitreg.connect.state import ConnectorState

POLL_S: Final = 0.25
# A connector that was changed shows its former state for a moment.
STEADY_S: Final = 2.0

Report = Callable[[str, str, str], None]


class ConnectCluster:
    """Brings connectors to what their files say; a second time changes nothing.

    Every method raises WorkerUnavailable if no worker answers, and ConfigurationError if one refuses us.
    """

    def __init__(self, rest: ConnectRest, timeout_s: float, report: Report) -> None:
        """Ask nothing yet.

        Args:
            rest: the workers.
            timeout_s: limit for connectors to start, s.
            report: gets what was done, to which connector, and details, as it happens.
        """
        self._rest = rest
        self._timeout_s = timeout_s
        self._report = report

    def require_valid(self, connectors: Sequence[Connector]) -> None:
        """Have the connectors' classes validate all configurations; nothing is changed.

        Raises:
            ConfigurationError: a class refuses its configuration.
        """
        refused: list[str] = []
        for connector in connectors:
            config = {"name": connector.name, **connector.config}
            errors = self._rest.validate(config["connector.class"], config)
            refused += [f"{connector.name} ({connector.origin}): {error}" for error in errors]
        if refused:
            raise ConfigurationError("\n".join(["nothing was changed; the connectors' classes refuse:", *refused]))

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
        state = self._rest.states().get(name)
        changed = changed_properties({} if state is None else state.config, connector.config)
        if state is None or changed:
            self._rest.put(name, connector.config)
            word, details = ("created", connector.origin) if state is None else ("changed", ", ".join(changed))
            self._report(word, name, details)
            return
        self._report("unchanged", name, connector.origin)
        if state.to_restart:
            self._rest.restart_failed(name)
            self._report("restarted", name, "; ".join(state.failures()))

    def _settled(self, names: Sequence[str]) -> list[ConnectorState]:
        since = time.monotonic()
        deadline = since + self._timeout_s
        seen: list[ConnectorState] = []
        while True:
            states = self._rest.states()
            found = [states.get(name) or ConnectorState(name, "", "UNASSIGNED", "", "", (), {}) for name in names]
            now = time.monotonic()
            if found != seen:
                seen, since = found, now
            settled = all(state.runs or state.failed or state.held for state in found)
            if now > deadline or (now - since >= STEADY_S and settled):
                return found
            time.sleep(POLL_S)


def changed_properties(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the properties in which two configurations differ, except the name, which the worker adds. Pure."""
    return sorted({key for key, _ in set(before.items()) ^ set(after.items())} - {"name"})


def outcome(state: ConnectorState) -> Diagnosis:
    """Judge a connector that was applied; one that an operator has paused or stopped stays so. Pure."""
    if state.runs:
        workers = sorted({task.worker for task in state.tasks})
        return Diagnosis(state.name, Severity.OK, f"{state.in_words()} at {', '.join(workers)}")
    if state.held and not state.failed:
        fix = f"PUT /connectors/{state.name}/resume of the REST API resumes it"
        return Diagnosis(state.name, Severity.WARNING, f"{state.state} by an operator, and stays so", fix)
    seen = "; ".join(state.failures()) or state.in_words()
    return Diagnosis(state.name, Severity.ERROR, f"doesn't run: {seen}", "`waitreg connect status` shows its state")
