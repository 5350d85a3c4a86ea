"""Keeps what waits to be sent to a topic within what the topic takes in one batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from sweeper.outgoing import Outgoing
from sweeper.record_size import record_size


class BatchRoom:
    """The records of one transaction that may still be put into one batch, by topic."""

    def __init__(self, limits: Mapping[str, int]) -> None:
        """Args: limits: max.message.bytes of the topics that take less than a full batch; no other is counted."""
        self._limits = limits
        self._queued: Counter[str] = Counter()

    def is_full(self, letter: Outgoing) -> bool:
        """Count a record in; True when all before it must have been sent, since a batch of all would be refused."""
        limit = self._limits.get(letter.topic)
        if limit is None:
            return False
        size = record_size(letter.key, letter.value, letter.headers)
        full = self._queued[letter.topic] > 0 and self._queued[letter.topic] + size > limit
        if full:
            self._queued.clear()
        self._queued[letter.topic] += size
        return full
