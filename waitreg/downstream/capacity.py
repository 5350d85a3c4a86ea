"""How many calls the downstream serves at once; the others wait for their turn, in their order."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType


class Capacity:
    """Used by one event loop; ``async with`` is a call that is served."""

    def __init__(self) -> None:
        self._most = 0
        self._served = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def change(self, most: int) -> None:
        """Serve this number of calls at once, or all with 0; calls that are served already continue."""
        self._most = most
        self._serve_next()

    async def __aenter__(self) -> None:
        if self._has_room:
            self._served += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # It has its turn, which is the next call's now.
                self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._leave()

    @property
    def _has_room(self) -> bool:
        return not self._most or self._served < self._most

    def _leave(self) -> None:
        self._served -= 1
        self._serve_next()

    def _serve_next(self) -> None:
        while self._waiting and self._has_room:
            turn = self._waiting.popleft()
            if not turn.done():
                self._served += 1
                turn.set_result(None)
