"""Typed handlers: the value is decoded before each call, which gets what no earlier attempt can have changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from processor.handlers.decoding import Decoder
from processor.handlers.open_handler import OpenHandler
from processor.handlers.python import PlainFunctionHandler
from wait_registry.handler import HandlerResult, Record

# Lookups of schemas at once; a schema is looked up once.
_LOOKUPS: Final = 8


class TypedAsynchronousHandler(OpenHandler):
    """Decodes the value, then calls the user's coroutine function.

    A value whose schema must be looked up, or that takes long, is decoded in a thread, any other one at once.

    Args:
        function: the user's handler.
        decoder: decodes the values.
        with_record: whether the function also takes the record.
    """

    def __init__(self, function: Callable[..., Any], decoder: Decoder, with_record: bool) -> None:
        self._function = function
        self._decoder = decoder
        self._with_record = with_record
        self._lookups = PlainFunctionHandler(decoder.decode, _LOOKUPS)

    async def close(self) -> None:
        """Let the threads end."""
        await self._lookups.close()

    async def call(self, record: Record) -> HandlerResult:
        """Decode the value and run one attempt.

        Raises:
            MalformedError: the value can't be decoded.
            TransientError: the schema registry doesn't answer.
        """
        payload: Any
        if self._decoder.decodes_at_once(record):
            payload = self._decoder.decode(record)
        else:
            assert self._lookups.slots is not None, "a lookup in no order"
            await self._lookups.slots.acquire()
            payload = await self._lookups.call(record)
        answer: HandlerResult = await (
            self._function(payload, record) if self._with_record else self._function(payload)
        )
        return answer


def decoding(function: Callable[..., Any], decoder: Decoder, with_record: bool) -> Callable[[Record], HandlerResult]:
    """Return a function that decodes the value and calls a plain function, both in the thread of the call."""

    def call(record: Record) -> HandlerResult:
        payload = decoder.decode(record)
        answer: HandlerResult = function(payload, record) if with_record else function(payload)
        return answer

    return call
