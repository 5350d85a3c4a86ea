"""Gathers single questions into batches, limited in number and time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

Ask = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


class BatchFailed(Exception):
    """The call for many brought no answer for this one: ask for it alone."""


class Gathering:
    """One batch that is being gathered, and those on their way.

    Args:
        ask: answers many questions at once, by their ids; what it raises fails its batch alone.
        most: questions in a batch, at most.
        wait_s: how long the first question of a batch waits for more, s.
    """

    def __init__(self, ask: Ask, most: int, wait_s: float) -> None:
        self._ask = ask
        self._most = most
        self._wait_s = wait_s
        self._questions: dict[str, Any] = {}
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._on_their_way: set[asyncio.Task[None]] = set()

    async def answer_for(self, name: str, question: Any) -> Any:
        """Return the answer to one question.

        Raises:
            BatchFailed: its batch failed, or came back without it.
        """
        if name in self._waiting:
            # The same record twice (a rebalance may do that): each wants its own answer, so the first batch leaves.
            self._leave()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._questions[name], self._waiting[name] = question, future
        if len(self._questions) >= self._most:
            self._leave()
        elif self._timer is None:
            self._timer = loop.call_later(self._wait_s, self._leave)
        return await future

    async def close(self) -> None:
        """Send what is still being gathered, and wait for every batch."""
        self._leave()
        await asyncio.gather(*self._on_their_way)

    def _leave(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Questions that were cancelled meanwhile (a timeout, the end of the process) are dropped.
        wanted = {name: future for name, future in self._waiting.items() if not future.done()}
        questions = {name: self._questions[name] for name in wanted}
        self._questions, self._waiting = {}, {}
        if questions:
            # The batch belongs to all of its records: no single one's cancellation may end it.
            task = asyncio.create_task(self._send(questions, wanted))
            self._on_their_way.add(task)
            task.add_done_callback(self._on_their_way.discard)

    async def _send(self, questions: dict[str, Any], waiting: dict[str, asyncio.Future[Any]]) -> None:
        answers: dict[str, Any] = {}
        try:
            answers = await self._ask(questions)
        except Exception as error:  # noqa: BLE001 - whatever broke it, each record is asked about alone
            failure = BatchFailed(f"{type(error).__name__}: {error}")
        else:
            failure = BatchFailed("no answer for this one")
        for name, future in waiting.items():
            if future.done():
                continue
            if name in answers:
                future.set_result(answers[name])
            else:
                future.set_exception(failure)
