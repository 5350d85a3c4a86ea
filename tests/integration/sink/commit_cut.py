"""A link to Postgres that breaks one connection at its COMMIT, before it arrives or before it is answered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

from tests.support.network import Link, Pair, postgres_at


class CommitCut(Link):
    """Once `armed` is set, the next COMMIT is the last message of its connection, and of it alone.

    Args:
        url: of Postgres.
        commit_arrives: whether Postgres gets that COMMIT.
        hangs: the client isn't told that its connection is over: it waits for an answer that never comes.
    """

    def __init__(self, url: str, *, commit_arrives: bool, hangs: bool = False) -> None:
        super().__init__(postgres_at(url))
        self._commit_arrives = commit_arrives
        self._hangs = hangs
        self._last: Pair | None = None
        self.armed = threading.Event()
        self.happened = threading.Event()

    async def _let_through(self, pair: Pair, data: bytes, upwards: bool) -> AsyncIterator[bytes]:
        if upwards and b"COMMIT" in data and self.armed.is_set():
            self.armed.clear()
            self._last = pair
            if self._commit_arrives:
                yield data
                return
        if pair is self._last:
            self.happened.set()
            if self._hangs:
                await asyncio.Event().wait()
            raise ConnectionAbortedError
        yield data
