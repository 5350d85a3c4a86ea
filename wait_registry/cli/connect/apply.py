"""Putting connectors in place: looked at by their classes first, all of them, then created or changed, then awaited.

What exports comes last, once the sinks have shown what was in the log: `wait_registry.cli.connect.caught_up`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from wait_registry.cli.connect.connector_file import Connector
from wait_registry.cli.connect.rest import ConnectRest, WorkerBusy, changed_properties
from wait_registry.cli.connect.roles import exports
from wait_registry.cli.connect.state import ConnectorState
from wait_registry.errors import ConfigurationError

POLL_S: Final = 0.25
# A connector that was changed shows for a moment how it was before.
STEADY_S: Final = 2.0

T = TypeVar("T")
Report = Callable[[str, str, str], None]


class Pace(Protocol):
    """What waiting is done with."""

    def monotonic(self) -> float:
        """Return s of a clock that never steps."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class Applying:
    """Brings a worker's connectors to what their files say; done again, it changes nothing."""

    def __init__(self, rest: ConnectRest, timeout_s: float, report: Report, pace: Pace = time) -> None:
        """Describe how.

        Args:
            rest: the worker.
            timeout_s: how long connectors may take to run, s; and a rebalance of the workers to end.
            report: gets what was done, to which connector, and details, as it happens.
            pace: clock and sleep.
        """
        self._rest = rest
        self._timeout_s = timeout_s
        self._report = report
        self._pace = pace

    def apply(self, connectors: Sequence[Connector]) -> list[ConnectorState]:
        """Put all of them in place and wait until each runs, has failed, or is held by a person; after `require_valid`.

        Returns:
            How they are then, in the same order.

        Raises:
            ConfigurationError: the worker refuses us.
            WorkerUnavailable: the worker doesn't answer; try again.
        """
        for connector in connectors:
            self._put(connector)
        return self._settled([connector.name for connector in connectors])

    def require_valid(self, connectors: Sequence[Connector]) -> None:
        """Have the connectors' classes look at their configurations, all of them; nothing is changed.

        Raises:
            ConfigurationError: a class refuses its configuration.
            WorkerUnavailable: the worker doesn't answer; try again.
        """
        refused: list[str] = []
        for connector in connectors:
            config = {"name": connector.name, **connector.config}
            for problem in self._patiently(partial(self._rest.validate, connector.connector_class, config)):
                refused.append(f"{connector.name} ({connector.origin}): {problem.name}: {problem.error}")
        if refused:
            raise ConfigurationError("\n".join(["nothing was changed; the connectors' classes refuse:", *refused]))

    def new_exporters(self, connectors: Sequence[Connector]) -> list[Connector]:
        """Return those that export and aren't there yet: they must find a view that is up to date.

        Raises:
            WorkerUnavailable: the worker doesn't answer; try again.
        """
        sources = [connector for connector in connectors if exports(connector.config)]
        return [source for source in sources if self._patiently(partial(self._rest.config, source.name)) is None]

    def states(self) -> dict[str, ConnectorState]:
        """Return all connectors of the workers, by name."""
        return self._patiently(self._rest.states)

    def _put(self, connector: Connector) -> None:
        name = connector.name
        before = self._patiently(lambda: self._rest.config(name))
        changed = None if before is None else changed_properties(before, connector.config)
        if changed is None or changed:
            self._patiently(lambda: self._rest.put(name, connector.config))
            self._report(
                *("created", name, connector.origin) if changed is None else ("changed", name, ", ".join(changed))
            )
            return
        self._report("unchanged", name, connector.origin)
        state = self._patiently(self._rest.states).get(name)
        if state is not None and state.to_restart:
            self._patiently(lambda: self._rest.restart_failed(name))
            self._report("restarted", name, "; ".join(state.failures()))

    def _settled(self, names: Sequence[str]) -> list[ConnectorState]:
        deadline = self._pace.monotonic() + self._timeout_s
        seen: tuple[ConnectorState | None, ...] = ()
        since = self._pace.monotonic()
        while True:
            states = self._patiently(self._rest.states)
            found = tuple(states.get(name) for name in names)
            now = self._pace.monotonic()
            if found != seen:
                seen, since = found, now
            if now > deadline or (now - since >= STEADY_S and all(map(_is_settled, found))):
                return [state or _unknown(name) for name, state in zip(names, found, strict=True)]
            self._pace.sleep(POLL_S)

    def _patiently(self, ask: Callable[[], T]) -> T:
        deadline = self._pace.monotonic() + self._timeout_s
        while True:
            try:
                return ask()
            except WorkerBusy:
                if self._pace.monotonic() > deadline:
                    raise
                self._pace.sleep(POLL_S)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a line says of a connector after `apply`: whether it is as it was asked for, and details."""

    good: bool
    word: str
    details: str


def verdict(state: ConnectorState) -> Verdict:
    """Judge how a connector is after `apply`; one that a person has paused or stopped is left so. Pure."""
    if state.runs:
        workers = sorted({task.worker for task in state.tasks})
        count = len(state.tasks)
        return Verdict(True, "running", f"{count} task{'' if count == 1 else 's'} at {', '.join(workers)}")
    if state.failed:
        return Verdict(False, "failed", "; ".join(state.failures()))
    if state.held:
        resume = f"PUT /connectors/{state.name}/resume"
        return Verdict(True, state.state.lower(), f"by hand; it is left so ({resume} of the REST API resumes it)")
    return Verdict(False, "not running", f"{state.in_words()}; `waitreg connect status` shows its state")


def _is_settled(state: ConnectorState | None) -> bool:
    return state is not None and (state.runs or state.failed or state.held)


def _unknown(name: str) -> ConnectorState:
    return ConnectorState(name, "", "UNASSIGNED", "", "", (), {})
