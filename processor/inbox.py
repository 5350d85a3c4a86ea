"""What sources, writers and calls report, until the loop takes it."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable

from processor.fault import Fault
from processor.health.stats import Stats
from processor.protocol.events import Event


class Inbox:
    """Holds events in the order in which they were put; it is made before every other part.

    Events are put and taken in the event loop's thread. A fault may be reported in any thread.

    Attributes:
        fault: the error that ends the process.
        stats: what is counted.
    """

    def __init__(self) -> None:
        self.fault = Fault()
        self.stats = Stats()
        self._events: deque[Event] = deque()
        self._read: Callable[[], None] | None = None
        self._context = contextvars.copy_context()
        self._wakes = False

    def read_by(self, read: Callable[[], None]) -> None:
        """Have events read: soon after they were put, although a poll lasts, or at once (`deliver`)."""
        self._read = read

    def put(self, event: Event) -> None:
        """Put an event, which is read in the next turn of the event loop at the latest."""
        self._events.append(event)
        if not self._wakes and self._read is not None:
            self._wakes = True
            asyncio.get_running_loop().call_soon(self._wake, context=self._context)

    def deliver(self, event: Event) -> None:
        """Put an event and have it read now; the effects that follow are executed when this returns."""
        self._events.append(event)
        if self._read is not None:
            self._read()

    def take(self) -> Event | None:
        """Return the next event; None if there is none."""
        return self._events.popleft() if self._events else None

    def _wake(self) -> None:
        self._wakes = False
        if self._read is not None:
            self._read()
