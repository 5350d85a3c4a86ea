"""The downstream's own record of every call it answered: an append-only file of JSON lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType

import orjson

from wait_registry.errors import DataError

ABORTED = 499  # the caller hung up before the answer (nginx' number for it): no work was done


@dataclass(frozen=True, slots=True)
class Call:
    """One finished call.

    ``number`` counts the downstream's calls from 1; ``started_ms`` and ``finished_ms`` are wall clock, ``started_s``
    and ``finished_s`` the monotonic clock; the record's coordinates come from the request's headers and are None when
    the caller sent none; ``body_sha256`` is of the request's body; ``status`` 499 means that the caller hung up, 0
    that the connection was closed on purpose without an answer.
    """

    number: int
    started_ms: int
    finished_ms: int
    started_s: float
    finished_s: float
    wait_id: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    delivery: int | None
    status: int
    body_sha256: str

    @property
    def latency_s(self) -> float:
        """Return how long the downstream worked on the call, s."""
        return self.finished_s - self.started_s

    @property
    def succeeded(self) -> bool:
        """Return whether the work was done."""
        return 200 <= self.status < 300


class CallLog:
    """Appends calls to a file, one write a line, so that a killed downstream leaves only whole lines behind."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __enter__(self) -> CallLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def append(self, call: Call) -> None:
        """Write one call; raise OSError when the disk is full."""
        line = orjson.dumps(asdict(call)) + b"\n"
        if os.write(self._descriptor, line) != len(line):
            raise OSError("short write to the call log: is the disk full?")


def read_calls(path: Path) -> Iterator[Call]:
    """Return the calls of a log file, in order; a last line without its newline is a call that never finished.

    Raises DataError, naming the line, when the file is not a call log.
    """
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.endswith(b"\n"):
                return
            try:
                yield Call(**orjson.loads(line))
            except (orjson.JSONDecodeError, TypeError) as error:
                raise DataError(
                    f"{path}, line {number}: not a call ({error}); expected one of a downstream log"
                ) from error
