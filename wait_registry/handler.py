"""What a handler sees and what it may answer: the whole public contract of user code.

A handler is ``async def handle(record)``, a plain function (run in a thread) or a class that is an async context
manager with such a method ``handle``, opened once per process. Returning None means done. ``Discard(reason)`` means
done on purpose without work. ``TransientError``, ``TimeoutError`` and ``OSError`` are retried in process; any other
exception, and anything else returned, dead-letters the record at once.

Delivery is at least once: after a crash or a rebalance the same record may come again, with the same ``wait_id``.
Use it as the idempotency key of whatever the handler calls; a record that is redelivered gets a new one, so where money
moves a key of the record's own is better.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from wait_registry.errors import PermanentError, TransientError

__all__ = ["AsyncHandler", "Discard", "HandlerResult", "PermanentError", "PlainHandler", "Record", "TransientError"]


# A named tuple: one is made for every call, at a quarter of what a frozen dataclass takes.
class Record(NamedTuple):
    """One consumed record.

    ``topic``, ``partition``, ``offset``, ``timestamp`` (ms since the epoch, -1 when the record has none) are those of
    the record's first delivery; ``delivery`` counts deliveries from 1; ``wait_id`` is the registration's key and a
    ready idempotency key; ``expires_at`` (UTC) is when the registry gives the record up.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    delivery: int
    wait_id: str
    group: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Discard:
    """A handler's answer for a record that needs no work; ``reason`` goes to the log, and metrics count it."""

    reason: str


HandlerResult = None | Discard
AsyncHandler = Callable[[Record], Awaitable[HandlerResult]]
PlainHandler = Callable[[Record], HandlerResult]
