"""The states of connectors: what the workers report, which of them a command uses, and how `status` shows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from waitreg.connect.connector_file import NAMES
from waitreg.result_rows import render_rows

RUNNING: Final = "RUNNING"
FAILED: Final = "FAILED"
# All that Kafka knows (AbstractStatus.State), as metrics have them.
STATES: Final = ("running", "failed", "paused", "stopped", "unassigned", "restarting", "destroyed")
_LINE_CHARS: Final = 400


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

    @property
    def failed(self) -> bool:
        """Whether it or one of its tasks has failed; the others may run."""
        return FAILED in (self.state, *(task.state for task in self.tasks))

    @property
    def runs(self) -> bool:
        """Whether it and all its tasks run; without a task nothing is done."""
        return bool(self.tasks) and {self.state, *(task.state for task in self.tasks)} == {RUNNING}

    @property
    def held(self) -> bool:
        """Whether an operator has paused or stopped it."""
        return self.state in ("PAUSED", "STOPPED")

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


def essence(trace: str) -> str:
    """Return a stack trace's first line and its innermost cause, which has the reason."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    if not lines:
        return "no reason given"
    causes = [line for line in lines if line.startswith("Caused by:")]
    # The kind of error is at the start of a long line, the reason at its end.
    return " ".join(
        line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS // 3]}…{line[-_LINE_CHARS // 3 * 2 :]}"
        for line in [lines[0], *causes[-1:]]
    )


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


def as_lines(present: Sequence[ConnectorState], missing: Sequence[str], lags: Mapping[str, int]) -> Iterator[str]:
    """Yield a row per connector and per task, then the failures, then what doesn't exist."""
    rows: list[tuple[object, ...]] = []
    for state in present:
        rows.append((state.name, state.kind, "", state.state, state.worker, lags.get(state.name)))
        rows += [("", "", task.number, task.state, task.worker, None) for task in state.tasks]
    if rows:
        yield from render_rows(("connector", "type", "task", "state", "worker", "lag"), rows)
    elif not missing:
        yield "no connector of this project exists: `waitreg connect apply` creates them, a NAME shows any other"
    for state in present:
        yield from (f"failed: {failure}" for failure in state.failures())
    yield from (f"not there: {name} (`waitreg connect apply` creates it)" for name in missing)


def as_json(present: Sequence[ConnectorState], missing: Sequence[str], lags: Mapping[str, int]) -> str:
    """Return one object: ``connectors`` with their tasks, ``missing`` names; a lag that isn't known is null."""
    connectors = [
        {**asdict(state), "running": state.runs, "failed": state.failed, "lag": lags.get(state.name)}
        for state in present
    ]
    for connector in connectors:
        del connector["config"]  # a file of the user's own may have a secret in it
    return json.dumps({"connectors": connectors, "missing": missing}, ensure_ascii=False)
