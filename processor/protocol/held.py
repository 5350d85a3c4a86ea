"""Records that are registered before their calls, and when each may start."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from processor.protocol.partition import Partition
from processor.protocol.record import Entry, State, Step, take_all

_WAITS_FOR_REPORT: Final = frozenset({State.REGISTERING, State.RENEWING})


class Held:
    """A queue for each partition, in the order of polling: so a commit may pass what has started, and nothing else.

    Args:
        awaits_commit: whether a call waits for a commit; else it waits for its registration only.
    """

    def __init__(self, awaits_commit: bool) -> None:
        self._awaits_commit = awaits_commit
        self._queues: dict[Partition, deque[Entry]] = {}

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __iter__(self) -> Iterator[Entry]:
        return (entry for queue in self._queues.values() for entry in queue)

    def add(self, partition: Partition, entries: Iterable[Entry]) -> None:
        """Take records just polled."""
        self._queues.setdefault(partition, deque()).extend(entries)

    def release(self, partition: Partition) -> list[Entry]:
        """Return the next records whose calls may start.

        One is registered, and every record before it; one of the warm-up is below the confirmed offset too.
        """
        queue = self._queues.get(partition)
        if queue is None:
            return []
        ready: list[Entry] = []
        committable, confirmed = partition.committable, partition.confirmed
        while queue and queue[0].state not in _WAITS_FOR_REPORT:
            entry = queue[0]
            if entry.state is State.HELD:
                if self._awaits_commit and entry.offset >= (confirmed if entry.warm_up else committable):
                    break
                ready.append(entry)
            queue.popleft()
        take_all(ready, Step.RELEASE)
        if not queue:
            del self._queues[partition]
        return ready

    def abandon(self, partition: Partition) -> list[Entry]:
        """Return what is registered, and will never be called here."""
        held = [entry for entry in self._queues.get(partition, ()) if entry.state is State.HELD]
        for entry in held:
            entry.take(Step.ABANDON)
        return held

    def wait_for_commit(self) -> bool:
        """Return whether calls wait for nothing but a confirmed commit."""
        if not self._awaits_commit:
            return False
        return any(queue[0].warm_up and queue[0].state is State.HELD for queue in self._queues.values())
