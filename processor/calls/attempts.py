"""All attempts at one record in this process: limit, classification, pauses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, NamedTuple

from processor.calls.call_contexts import CallContexts
from processor.calls.deadline import Deadline, log_fields
from processor.calls.retry_decision import RetryDecision
from processor.handlers.descriptors import no_descriptor
from processor.handlers.failures import asked_pause_s, is_retriable
from processor.handlers.open_handler import CURRENT_ATTEMPT, OpenHandler
from processor.handlers.python import AwaitableAnswerError
from processor.handlers.threads import NoThreadError
from processor.handlers.user_code import stored
from processor.health.stats import Stats
from processor.protocol.results import Discarded, Done, Failed, Result
from wait_registry.clock import Clock
from wait_registry.errors import MalformedError, PermanentError
from wait_registry.handler import Discard, Record
from wait_registry.telemetry.tracing import RecordTrace

log = logging.getLogger(__name__)


_DONE: Final = Done()


class InvalidAnswerError(PermanentError):
    """A handler returned something that isn't an answer."""


class _Failure(NamedTuple):
    """A failed attempt: its error, whether the error's message is this system's own, and how many were made."""

    error: BaseException
    ours: bool
    attempts: int


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

    def __init__(
        self,
        handler: OpenHandler,
        timeout_s: float,
        decision: RetryDecision,
        clock: Clock,
        stats: Stats,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._call = handler.call
        self.slots = handler.slots
        self.in_own_tasks = handler.in_own_tasks
        self.contexts = CallContexts()
        self._timeout_s = timeout_s
        self._decision = decision
        self._monotonic = clock.monotonic
        self.stats = stats
        self._attempts = stats.attempts
        self._sleep = sleep

    async def run(
        self,
        record: Record,
        started_s: float,
        expires_s: float,
        deadline: Deadline,
        trace: RecordTrace | None = None,
        attempts: int = 0,
    ) -> Result:
        """Work on one record; the caller has taken a slot if the handler has any.

        Args:
            record: what the handler gets.
            started_s: now, on the monotonic clock.
            expires_s: when its registration expires, on that clock.
            deadline: the calling task's own.
            trace: gets each attempt, if the record is traced.
            attempts: made before.

        Returns:
            How it ended; no exception of the handler's comes out.

        Raises:
            asyncio.CancelledError: the call was revoked: the record has no outcome.
            ShortageError, AwaitableAnswerError: the handler can't be called: the record has no outcome, and the
                process must end.
        """
        at_s = started_s + self._timeout_s
        while True:
            attempts += 1
            deadline.begin(at_s)
            ended = await self._attempt(record, deadline, attempts, trace)
            if not isinstance(ended, _Failure):
                return ended
            if (result := await self._end_after(ended, record, expires_s, deadline, trace)) is not None:
                return result
            at_s = self._monotonic() + self._timeout_s

    async def _attempt(
        self, record: Record, deadline: Deadline, attempts: int, trace: RecordTrace | None
    ) -> Result | _Failure:
        """Make one attempt; errors as `run`."""
        if CURRENT_ATTEMPT.get() != attempts:  # setting it costs eight times as much
            CURRENT_ATTEMPT.set(attempts)
        if trace is not None:
            trace.attempt_started(attempts)
        try:
            answer = await self._call(record)
        except (NoThreadError, AwaitableAnswerError):
            deadline.clear()
            raise  # the record hasn't been tried
        except BaseException as raised:
            if isinstance(raised, GeneratorExit) and not deadline.task.get_loop().is_running():
                raise  # the event loop is being torn down
            # The handler decides about its record, never about the loop.
            error = await self._explain(record, raised, deadline, attempts, trace)
            return _Failure(error, error is not raised, attempts)
        deadline.clear()
        if deadline.task.cancelling():
            await deadline.take_back_cancellations()
        if answer is None or isinstance(answer, Discard):
            self._attempts["ok"] += 1
            if trace is not None:
                trace.attempt_ended(None)
            return _DONE if answer is None else Discarded(_reason(answer))
        self._attempts["error"] += 1
        return _Failure(_invalid(answer), True, attempts)

    async def _end_after(
        self, failure: _Failure, record: Record, expires_s: float, deadline: Deadline, trace: RecordTrace | None
    ) -> Result | None:
        """Return the result of a record after a failed attempt; None after the pause before another one."""
        error, ours, attempts = failure
        if trace is not None:
            trace.attempt_ended(error)
        pause_s = self._decision.pause_s(error, attempts, self._monotonic(), expires_s)
        if pause_s is not None and self.in_own_tasks:
            release_frames(error)
            rest = self._rest(pause_s, record, expires_s, deadline, trace, attempts)
            return await _in_new_task(rest, deadline, self.contexts)
        if pause_s is None or not await self._waited(pause_s, expires_s):
            reason = "malformed" if isinstance(error, MalformedError) else "failed"
            return Failed(error, ours, is_retriable(error), asked_pause_s(error), reason)
        release_frames(error)
        return None

    async def _explain(
        self, record: Record, raised: BaseException, deadline: Deadline, attempts: int, trace: RecordTrace | None
    ) -> BaseException:
        """Distinguish an exceeded limit, a revoked call and the handler's own failure."""
        overran = deadline.clear()
        if deadline.task.cancelling() and not deadline.revoked:
            await deadline.take_back_cancellations()
        if deadline.revoked:
            raise asyncio.CancelledError from raised  # whatever the handler made of it isn't an outcome
        # Not the record's fault: every record would be dead-lettered after its few attempts.
        if (shortage := no_descriptor(raised)) is not None:
            raise shortage from raised
        if overran:
            self._attempts["timeout"] += 1
            error = TimeoutError(f"attempt {attempts} was over its limit of {self._timeout_s:g} s")
            log.warning("%s", error, extra=log_fields(record))
            error.__cause__ = None if isinstance(raised, asyncio.CancelledError) else raised
            if trace is not None:
                trace.attempt_over_limit()
            return error
        # The service may have measured the limit itself (gRPC).
        self._attempts["timeout" if isinstance(raised, TimeoutError) else "error"] += 1
        return raised

    async def _rest(
        self,
        pause_s: float,
        record: Record,
        expires_s: float,
        deadline: Deadline,
        trace: RecordTrace | None,
        attempts: int,
    ) -> Result:
        """Make the attempts that are left."""
        await self._sleep(pause_s)
        try:
            return await self.run(record, self._monotonic(), expires_s, deadline, trace, attempts)
        except BaseException:
            if trace is not None:
                trace.attempt_left()
            raise

    async def _waited(self, pause_s: float, expires_s: float) -> bool:
        """Wait before the next attempt; False when there is none."""
        await self._sleep(pause_s)
        if self.slots is not None:
            await self.slots.take()
            # All slots may have been blocked for long.
            if not self._decision.still_in_time(self._monotonic(), expires_s):
                self.slots.give()
                return False
        return True


async def _in_new_task(rest: Coroutine[Any, Any, Result], deadline: Deadline, contexts: CallContexts) -> Result:
    """Have another task make the attempts that are left: a timer of the failed one may cancel its own task."""
    own = deadline.task
    task = asyncio.create_task(rest, context=contexts.fresh())
    deadline.pass_to(task)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task])
    deadline.pass_to(own)
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


def release_frames(error: BaseException) -> None:
    """Remove the tracebacks of an exception and of its causes, contexts and group members.

    An exception that a frame of its own traceback holds is a reference cycle, and the frame holds the record. Only the
    garbage collector finds such cycles, thousands of failed records later.

    Args:
        error: keeps its message, as do its causes, contexts and group members.
    """
    pending, seen = [error], {id(error)}
    while pending:
        one = pending.pop()
        # Not an assignment: an exception of a user's class may refuse those.
        BaseException.with_traceback(one, None)
        members = stored(one, BaseExceptionGroup, "exceptions") if isinstance(one, BaseExceptionGroup) else ()
        links = (stored(one, BaseException, name) for name in ("__cause__", "__context__"))
        for behind in (*links, *members):
            if behind is not None and id(behind) not in seen:
                seen.add(id(behind))
                pending.append(behind)
