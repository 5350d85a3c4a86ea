"""Whether each topic is read and written, as /health shows it, and what was last written of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from sink.apply.applier import Applied
from wait_registry.records.tombstone import oldest_allowed

Monotonic = Callable[[], float]


class TopicHealth:
    """What is known of one topic: set by the sink, read by the thread that serves /metrics and /health.

    Attributes:
        stream: labels the metrics.
        applied: what was last written, None before that.
        oldest_allowed_s: how old the topic's positions may be, s; None for no bound.
    """

    def __init__(self, stream: str, longest_silence_s: float, monotonic: Monotonic = time.monotonic) -> None:
        """A healthy topic has a batch or a refresh within ``longest_silence_s``."""
        self.stream = stream
        self._monotonic = monotonic
        self._longest_silence_s = longest_silence_s
        self._trouble: str | None = "not started yet"
        self._seen_at = 0.0
        self.applied: Applied | None = None
        self.oldest_allowed_s: float | None = None

    def reading(self, delete_retention_ms: int | None) -> None:
        """Note that reading starts; that it can read and write shows with its first batch, or when nothing is left.

        ``delete_retention_ms`` bounds the age of the topic's positions, None for no bound.
        """
        if self._trouble is not None:
            self._trouble = "its first batch since the start isn't written yet"
        if delete_retention_ms is not None:
            self.oldest_allowed_s = oldest_allowed(delete_retention_ms).total_seconds()

    def committed(self, applied: Applied) -> None:
        """Note a batch, or idle positions that were written down; a batch ends any trouble there was."""
        self._seen_at = self._monotonic()
        self.applied = applied
        if applied.written is not None:
            self._trouble = None

    def caught_up(self) -> None:
        """Note that nothing is left to read, which ends any trouble there was."""
        self._trouble = None

    def broken(self, reason: str) -> None:
        """Note why the topic isn't read."""
        self._trouble = reason

    @property
    def up(self) -> bool:
        """Whether the topic is read and written."""
        return self._trouble is None

    def reasons(self) -> list[str]:
        """Return why this topic isn't ready, nothing when it is."""
        trouble, silent_s = self._trouble, self._monotonic() - self._seen_at
        if trouble is None and silent_s > self._longest_silence_s:
            trouble = f"nothing committed for {silent_s:.0f} s"
        return [] if trouble is None else [f"{self.stream} stream: {trouble}"]
