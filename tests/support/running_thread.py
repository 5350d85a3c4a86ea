"""Work in a thread of the test's process, and what ended it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.support.waiting import wait_until


class RunningThread:
    """Runs at once; ``error`` is what the work raised."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self._work = work
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def ended(self) -> bool:
        """Whether the work returned or raised."""
        return not self.thread.is_alive()

    def wait_ended(self, deadline_s: float = 90.0) -> BaseException | None:
        """Wait until it has ended and return what it raised."""
        wait_until(lambda: self.ended, deadline_s, "the end of the thread")
        return self.error

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - kept for the test to look at
            self.error = error
