"""What the workers say of a connector: its own state, its tasks', and why one failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

RUNNING: Final = "RUNNING"
FAILED: Final = "FAILED"
# A person asked for it: not to be mended.
HELD: Final = frozenset({"PAUSED", "STOPPED"})
# All that Kafka knows (AbstractStatus.State), as metrics have them.
STATES: Final = ("running", "failed", "paused", "stopped", "unassigned", "restarting", "destroyed")
# Of a line that is longer both ends are told: what it is stands first, what is wrong and what to do last.
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
        """Whether a person has paused or stopped it."""
        return self.state in HELD

    @property
    def to_mend(self) -> bool:
        """Whether it should be restarted: what a person has paused or stopped is left alone, whatever had failed."""
        return self.failed and not self.held

    def failures(self) -> Iterator[str]:
        """Yield what failed and why, a sentence each."""
        if self.state == FAILED:
            yield f"{self.name}: {essence(self.trace)}"
        for task in self.tasks:
            if task.state == FAILED:
                yield f"{self.name} task {task.number}: {essence(task.trace)}"

    def in_words(self) -> str:
        """Say how it is: ``RUNNING, 2 tasks RUNNING``."""
        counted = Counter(task.state for task in self.tasks)
        tasks = [f"{count} task{'' if count == 1 else 's'} {state}" for state, count in sorted(counted.items())]
        return ", ".join([self.state, *(tasks or ["no task"])])

    def _states(self) -> list[str]:
        return [self.state, *(task.state for task in self.tasks)]


def essence(trace: str) -> str:
    """Return a stack trace's first line and its innermost cause, which is where the reason stands."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    if not lines:
        return "no reason given"
    causes = [line for line in lines if line.startswith("Caused by:")]
    return " ".join(_shortened(line) for line in [lines[0], *causes[-1:]])


def _shortened(line: str) -> str:
    whole = len(line) <= _HEAD_CHARS + 1 + _TAIL_CHARS
    return line if whole else f"{line[:_HEAD_CHARS]}…{line[-_TAIL_CHARS:]}"
