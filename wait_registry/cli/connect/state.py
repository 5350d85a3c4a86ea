"""The states of connectors: what the workers report, which of them a command uses, and how `status` shows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wait_registry.cli.connect.connector_file import NAMES
from wait_registry.cli.result_rows import render_rows

RUNNING: Final = "RUNNING"
FAILED: Final = "FAILED"
# An operator asked for it: not to be restarted.
HELD: Final = frozenset({"PAUSED", "STOPPED"})
# All that Kafka knows (AbstractStatus.State), as metrics have them.
STATES: Final = ("running", "failed", "paused", "stopped", "unassigned", "restarting", "destroyed")
# Both ends of a longer line are shown: the kind of error is at its start, the reason at its end.
_HEAD_CHARS: Final = 150
_TAIL_CHARS: Final = 249


@dataclass(frozen=True, slots=True)
class TaskState:
    """One task: where it runs, and its stack trace when it has failed."""

    number: int
    state: str
    worker: str
    trace: str


@dataclass(frozen=True, slots=True)
class ConnectorState:
    """A connector with its tasks; ``kind`` is ``sink`` or ``source``, ``config`` as it was given (no secrets)."""

    name: str
    kind: str
    state: str
    worker: str
    trace: str
    tasks: tuple[TaskState, ...]
    config: Mapping[str, str]

    @classmethod
    def of(cls, status: Mapping[str, Any], info: Mapping[str, Any]) -> ConnectorState:
        """Read the REST API's ``status`` and ``info``."""
        own = status["connector"]
        tasks = tuple(
            TaskState(task["id"], task["state"], task.get("worker_id", ""), task.get("trace", ""))
            for task in status["tasks"]
        )
        kind, config = str(status.get("type", "")), dict(info["config"])
        return cls(status["name"], kind, own["state"], own.get("worker_id", ""), own.get("trace", ""), tasks, config)

    @classmethod
    def unknown(cls, name: str) -> ConnectorState:
        """Return a connector that the workers don't list."""
        return cls(name, "", "UNASSIGNED", "", "", (), {})

    @property
    def failed(self) -> bool:
        """Whether it or one of its tasks has failed; the others may run."""
        return FAILED in self._states()

    @property
    def runs(self) -> bool:
        """Whether it and all its tasks run; without a task nothing is done."""
        return bool(self.tasks) and set(self._states()) == {RUNNING}

    @property
    def held(self) -> bool:
        """Whether an operator has paused or stopped it."""
        return self.state in HELD

    @property
    def to_restart(self) -> bool:
        """Whether it should be restarted: one that an operator has paused or stopped stays so."""
        return self.failed and not self.held

    def failures(self) -> Iterator[str]:
        """Yield what failed and why, a sentence each."""
        if self.state == FAILED:
            yield f"{self.name}: {essence(self.trace)}"
        for task in self.tasks:
            if task.state == FAILED:
                yield f"{self.name} task {task.number}: {essence(task.trace)}"

    def in_words(self) -> str:
        """Return its state in words: ``RUNNING, 2 tasks RUNNING``."""
        counted = Counter(task.state for task in self.tasks)
        tasks = [f"{count} task{'' if count == 1 else 's'} {state}" for state, count in sorted(counted.items())]
        return ", ".join([self.state, *(tasks or ["no task"])])

    def _states(self) -> list[str]:
        return [self.state, *(task.state for task in self.tasks)]


def essence(trace: str) -> str:
    """Return a stack trace's first line and its innermost cause, which has the reason."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    if not lines:
        return "no reason given"
    causes = [line for line in lines if line.startswith("Caused by:")]
    return " ".join(_shortened(line) for line in [lines[0], *causes[-1:]])


def _shortened(line: str) -> str:
    whole = len(line) <= _HEAD_CHARS + 1 + _TAIL_CHARS
    return line if whole else f"{line[:_HEAD_CHARS]}…{line[-_TAIL_CHARS:]}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Connectors that exist, in the order asked for, and names of those that should exist and don't."""

    present: tuple[ConnectorState, ...]
    missing: tuple[str, ...]

    @classmethod
    def of(cls, states: Mapping[str, ConnectorState], named: Sequence[str]) -> Chosen:
        """Choose among all connectors of the workers. Pure.

        Args:
            states: all that exist, by name.
            named: those asked for; if empty, those of this project that exist.
        """
        wanted = dict.fromkeys(named or NAMES)
        present = tuple(states[name] for name in wanted if name in states)
        return cls(present, tuple(name for name in wanted if name not in states) if named else ())


_COLUMNS = ("connector", "type", "task", "state", "worker", "lag")


def is_well(chosen: Chosen) -> bool:
    """Return whether everything asked for exists and nothing has failed."""
    return not chosen.missing and not any(state.failed for state in chosen.present)


def as_lines(chosen: Chosen, lags: Mapping[str, int]) -> Iterator[str]:
    """Yield a row per connector and per task, then the failures, then what doesn't exist."""
    rows = [row for state in chosen.present for row in _rows(state, lags.get(state.name))]
    if rows:
        yield from render_rows(_COLUMNS, rows)
    elif not chosen.missing:
        yield "no connector of this project exists: `waitreg connect apply` creates them, a NAME shows any other"
    for state in chosen.present:
        yield from (f"failed: {failure}" for failure in state.failures())
    yield from (f"not there: {name} (`waitreg connect apply` creates it)" for name in chosen.missing)


def as_json(chosen: Chosen, lags: Mapping[str, int]) -> str:
    """Return one object: ``connectors`` with their tasks, ``missing`` names; a lag that isn't known is null."""
    connectors = [
        {
            "name": state.name,
            "type": state.kind,
            "state": state.state,
            "worker": state.worker,
            "running": state.runs,
            "failed": state.failed,
            "lag": lags.get(state.name),
            "trace": state.trace,
            "tasks": [
                {"task": task.number, "state": task.state, "worker": task.worker, "trace": task.trace}
                for task in state.tasks
            ],
        }
        for state in chosen.present
    ]
    return json.dumps({"connectors": connectors, "missing": list(chosen.missing)}, ensure_ascii=False)


def _rows(state: ConnectorState, lag: int | None) -> Iterator[tuple[object, ...]]:
    yield state.name, state.kind, "", state.state, state.worker, lag
    for task in state.tasks:
        yield "", "", task.number, task.state, task.worker, None
