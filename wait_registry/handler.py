"""The public contract of handlers: the record that they get, and the results that they may return.

A handler is ``async def handle(record)``, a plain function (run in a thread) or a class that is an async context
manager with such a method ``handle``, opened once per process. ``None`` means done. ``Discard(reason)`` means that
the record needs no work. ``TransientError``, ``TimeoutError`` and ``OSError`` are retried in process; any other
exception, and any other result, dead-letters the record at once.

Delivery is at least once: after a crash or a rebalance the handler may get the same record again, with the same
``wait_id``. Use it as the idempotency key of the services that the handler calls. A redelivered record gets a new wait
ID, so for payments use a key from the record itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from wait_registry.errors import PermanentError, TransientError

__all__ = ["AsyncHandler", "Discard", "HandlerResult", "PermanentError", "PlainHandler", "Record", "TransientError"]


# A named tuple costs a quarter of a frozen dataclass; one is built per call.
class Record(NamedTuple):
    """One consumed record.

    ``topic``, ``partition``, ``offset``, ``timestamp`` (ms since the epoch, -1 if the record has none) are those of
    the record's first delivery; ``delivery`` counts deliveries from 1; ``wait_id`` is the registration's key and
    an idempotency key; ``expires_at`` (UTC) is when the registration expires, None if there is none yet.
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
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Discard:
    """A handler's result for a record that needs no work; ``reason`` is logged, and metrics count the record."""

    reason: str


HandlerResult = None | Discard
AsyncHandler = Callable[[Record], Awaitable[HandlerResult]]
PlainHandler = Callable[[Record], HandlerResult]
