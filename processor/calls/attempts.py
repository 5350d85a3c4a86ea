"""All attempts at one record in this process: limit, classification, pauses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from processor.calls.call_contexts import CallContexts
from processor.calls.deadline import Call
from processor.calls.retry_decision import RetryDecision
from processor.handlers.descriptors import NoThreadError, no_descriptor
from processor.handlers.failures import asked_pause_s, is_retriable
from processor.handlers.open_handler import CURRENT_ATTEMPT, OpenHandler
from processor.handlers.python import AwaitableAnswerError
from processor.handlers.user_code import release_frames
from processor.health.stats import Stats
from processor.protocol.results import Discarded, Done, Failed, Result
from wait_registry.clock import Clock
from wait_registry.errors import MalformedError, PermanentError
from wait_registry.handler import Discard, Record
from wait_registry.logs import log_fields

log = logging.getLogger(__name__)


_DONE: Final = Done()


class InvalidAnswerError(PermanentError):
    """A handler returned something that isn't an answer."""


class _Failure(NamedTuple):
    """A failed attempt: its error, whether the error's message is this system's own, and how many were made."""

    error: BaseException
    ours: bool
    attempts: int


@dataclass(eq=False)
class Attempts:
    """Calls the handler until it answers, fails for good, or no time is left.

    Args:
        handler: opened already.
        timeout_s: the limit of one attempt, s.
        decision: what follows a failed attempt.
        clock: the monotonic clock.
        stats: where attempts are counted.
        sleep: waits between two attempts.
    """

    handler: OpenHandler
    timeout_s: float
    decision: RetryDecision
    clock: Clock
    stats: Stats
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        self._call = self.handler.call
        self.slots = self.handler.slots
        self.contexts = CallContexts()
        self._attempts = self.stats.attempts

    def run(self, record: Record, call: Call, now_s: float, attempts: int = 1) -> Coroutine[Any, Any, Result]:
        """Work on one record; the caller has acquired a slot if the handler has any.

        Args:
            record: what the handler gets.
            call: of the calling task, started with this record.
            now_s: the monotonic clock.
            attempts: made in this process, the next one included.

        Returns:
            How it ended; no exception of the handler's comes out.

        Raises:
            asyncio.CancelledError: the call was revoked: the record has no outcome.
            ShortageError, AwaitableAnswerError: the handler can't be called: the record has no outcome, and the
                process must end.
        """
        call.begin(now_s + self.timeout_s)
        return self._attempt(record, call, attempts)

    async def _attempt(self, record: Record, call: Call, attempts: int) -> Result:
        """Make one attempt, and those that follow if it fails; errors as `run`."""
        if CURRENT_ATTEMPT.get() != attempts:  # setting it costs eight times as much
            CURRENT_ATTEMPT.set(attempts)
        if call.trace is not None:
            call.trace.attempt_started(attempts)
        try:
            answer = await self._call(record)
        except (NoThreadError, AwaitableAnswerError):
            call.clear()
            raise  # the record hasn't been tried
        except BaseException as raised:
            if isinstance(raised, GeneratorExit) and not call.task.get_loop().is_running():
                raise  # the event loop is being torn down
            # The handler decides about its record, never about the loop.
            error = await self._explain(record, raised, call, attempts)
            failure = _Failure(error, error is not raised, attempts)
        else:
            call.clear()
            if call.task.cancelling():
                await call.take_back_cancellations()
            if answer is None or isinstance(answer, Discard):
                self._attempts["ok"] += 1
                if call.trace is not None:
                    call.trace.attempt_ended(None)
                return _DONE if answer is None else Discarded(_reason(answer))
            self._attempts["error"] += 1
            failure = _Failure(_invalid(answer), True, attempts)
        return await self._after(failure, record, call)

    async def _after(self, failure: _Failure, record: Record, call: Call) -> Result:
        """Return the result of a record after a failed attempt, with those that follow."""
        error, ours, attempts = failure
        if call.trace is not None:
            call.trace.attempt_ended(error)
        pause_s = self.decision.pause_s(error, attempts, self.clock.monotonic(), call.expires_s)
        if pause_s is not None:
            result = await _in_new_task(self._rest(failure, pause_s, record, call), call, self.contexts)
            if result is not None:
                return result
        reason = "malformed" if isinstance(error, MalformedError) else "failed"
        return Failed(error, ours, is_retriable(error), asked_pause_s(error), reason)

    async def _explain(self, record: Record, raised: BaseException, call: Call, attempts: int) -> BaseException:
        """Distinguish an exceeded limit, a revoked call and the handler's own failure."""
        overran = call.clear()
        if call.task.cancelling() and not call.revoked:
            await call.take_back_cancellations()
        if call.revoked:
            raise asyncio.CancelledError from raised  # whatever the handler made of it isn't an outcome
        # Not the record's fault: every record would be dead-lettered after its few attempts.
        if (shortage := no_descriptor(raised)) is not None:
            raise shortage from raised
        if overran:
            self._attempts["timeout"] += 1
            error = TimeoutError(f"attempt {attempts} was over its limit of {self.timeout_s:g} s")
            log.warning("%s", error, extra=log_fields(record))
            error.__cause__ = None if isinstance(raised, asyncio.CancelledError) else raised
            if call.trace is not None:
                call.trace.attempt_over_limit()
            return error
        # The service may have measured the limit itself (gRPC).
        self._attempts["timeout" if isinstance(raised, TimeoutError) else "error"] += 1
        return raised

    async def _rest(self, failure: _Failure, pause_s: float, record: Record, call: Call) -> Result | None:
        """Make the attempts that are left after a failure; None if there is no time for another one."""
        if self.slots is None:
            release_frames(failure.error)
        await self.sleep(pause_s)
        if self.slots is not None:
            await self.slots.acquire()
            # All slots may have been blocked for long.
            if not self.decision.still_in_time(self.clock.monotonic(), call.expires_s):
                self.slots.release()
                return None
            release_frames(failure.error)
        try:
            return await self.run(record, call, self.clock.monotonic(), failure.attempts + 1)
        except BaseException:
            if call.trace is not None:
                call.trace.attempt_left()
            raise


async def _in_new_task(rest: Coroutine[Any, Any, Result | None], call: Call, contexts: CallContexts) -> Result | None:
    """Have another task make the attempts that are left: a timer of the failed one may cancel its own task."""
    own = call.task
    task = asyncio.create_task(rest, context=contexts.fresh())
    call.pass_to(task)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    call.pass_to(own)
    return task.result()


def _reason(answer: Discard) -> str:
    try:
        return str(answer.reason)
    except Exception as unusable:  # noqa: BLE001 - the handler's own class may raise anything
        return f"its reason can't be shown: {type(unusable).__name__}"


def _invalid(answer: object) -> InvalidAnswerError:
    return InvalidAnswerError(
        f"the handler returned {type(answer).__name__}; expected None (done) or wait_registry.handler.Discard(reason)"
    )
