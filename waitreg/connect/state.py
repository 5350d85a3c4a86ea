"""The states of connectors: what the workers report, and which of them `watch` watches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

# This project's connectors.
NAMES: Final = ("wait.sink", "dead_letter.sink", "expired.source", "expired.tombstones")
RUNNING: Final = "RUNNING"
FAILED: Final = "FAILED"
# All that Kafka knows (AbstractStatus.State), as metrics have them.
STATES: Final = ("running", "failed", "paused", "stopped", "unassigned", "restarting", "destroyed")


@dataclass(frozen=True, slots=True)
class TaskState:
    """One task, and its stack trace when it has failed."""

    number: int
    state: str
    trace: str


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """A connector with its tasks; ``kind`` is ``sink`` or ``source``, ``config`` as it was given (no secrets)."""

    name: str
    kind: str
    state: str
    trace: str
    tasks: tuple[TaskState, ...]
    config: Mapping[str, str]

    @classmethod
    def of(cls, status: Mapping[str, Any], info: Mapping[str, Any]) -> ConnectorState:
        """Read the REST API's ``status`` and ``info``."""
        own = status["connector"]
        tasks = tuple(TaskState(task["id"], task["state"], task.get("trace", "")) for task in status["tasks"])
        kind, config = str(status.get("type", "")), dict(info["config"])
        return cls(status["name"], kind, own["state"], own.get("trace", ""), tasks, config)

    @property
    def failed(self) -> bool:
        """Whether it or one of its tasks has failed; the others may run."""
        return FAILED in (self.state, *(task.state for task in self.tasks))

    @property
    def runs(self) -> bool:
        """Whether it and all its tasks run; without a task nothing is done."""
        return bool(self.tasks) and {self.state, *(task.state for task in self.tasks)} == {RUNNING}

    @property
    def to_restart(self) -> bool:
        """Whether it should be restarted: one that an operator has paused or stopped stays so."""
        return self.failed and self.state not in ("PAUSED", "STOPPED")

    def failures(self) -> Iterator[str]:
        """Yield what failed and why, a sentence each."""
        if self.state == FAILED:
            yield f"{self.name}: {essence(self.trace)}"
        for task in self.tasks:
            if task.state == FAILED:
                yield f"{self.name} task {task.number}: {essence(task.trace)}"


def essence(trace: str) -> str:
    """Return a stack trace's first line and its innermost cause, which has the reason."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    if not lines:
        return "no reason given"
    causes = [line for line in lines if line.startswith("Caused by:")]
    return " ".join([lines[0], *causes[-1:]])


def choose(states: Mapping[str, ConnectorState], named: Sequence[str]) -> tuple[list[ConnectorState], list[str]]:
    """Choose among all connectors of the workers. Pure.

    Args:
        states: all that exist, by name.
        named: those asked for; if empty, those of this project that exist.

    Returns:
        The connectors that exist, in the order asked for, and the names of those that should exist and don't.
    """
    wanted = dict.fromkeys(named or NAMES)
    present = [states[name] for name in wanted if name in states]
    return present, [name for name in wanted if named and name not in states]
