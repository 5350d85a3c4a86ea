"""The downstream's own record of its calls: a line per call in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from waitreg.load.json_lines import read_json_lines
from waitreg.load.manifest import Coordinates

ABORTED = 499  # the caller hung up before the answer (nginx' number for it): no work was done


@dataclass(frozen=True, slots=True)
class Call:
    """One finished call.

    ``number`` counts the downstream's calls from 1; ``started_ms`` and ``finished_ms`` are wall clock, ``started_s``
    and ``finished_s`` the monotonic clock; the record's coordinates come from the request's headers and are None when
    the caller sent none; ``body_sha256`` is of the request's body; ``status`` 499 means that the caller hung up, 0
    that the connection was closed on purpose without an answer; ``path`` is that of the URL without the first
    slash, which may name the caller.
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
    idempotency_key: str | None = None
    path: str = ""

    @property
    def latency_s(self) -> float:
        """Return how long the downstream worked on the call, s."""
        return self.finished_s - self.started_s

    @property
    def coordinates(self) -> Coordinates | None:
        """Return the record's topic, partition and offset; None when the caller sent none."""
        if self.topic is None or self.partition is None or self.offset is None:
            return None
        return (self.topic, self.partition, self.offset)

    @property
    def succeeded(self) -> bool:
        """Return whether the work was done."""
        return 200 <= self.status < 300


def read_calls(path: Path) -> Iterator[Call]:
    """Return the calls of a log, in order; raise DataError, naming the line, when the file is something else."""
    return read_json_lines(path, "downstream's log", lambda line: Call(**line))
