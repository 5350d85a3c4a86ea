"""Work that is repeated alongside the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from processor.fault import Fault


class Periodic(NamedTuple):
    """What is done from time to time: its name, its pause, s, and the work; ``first_s`` is before the first time, s."""

    name: str
    every_s: float
    run_once: Callable[[], Awaitable[object]]
    first_s: float | None = None

    async def run(self) -> None:
        """Repeat the work until cancelled."""
        pause_s = self.every_s if self.first_s is None else self.first_s
        while True:
            await asyncio.sleep(pause_s)
            await self.run_once()
            pause_s = self.every_s

    def start(self, fault: Fault) -> asyncio.Task[None]:
        """Begin to repeat the work, in a task; its error ends the process."""

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if error is not None:
                fault.report(error)

        task = asyncio.create_task(self.run(), name=self.name)
        task.add_done_callback(ended)
        return task
