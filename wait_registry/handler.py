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

from wait_registry.errors import PermanentError, TransientError

__all__ = ["AsyncHandler", "Discard", "HandlerResult", "PermanentError", "PlainHandler", "Record", "TransientError"]


class Record:
    """One consumed record.

    ``topic``, ``partition``, ``offset``, ``timestamp`` (ms since the epoch, -1 if the record has none) are those of
    the record's first delivery; ``delivery`` counts deliveries from 1; ``wait_id`` is the registration's key and
    an idempotency key; ``expires_at`` (UTC) is when the registration expires, None if there is none yet.
    """

    __slots__ = (
        "_wait_id",
        "delivery",
        "expires_at",
        "group",
        "headers",
        "key",
        "offset",
        "partition",
        "timestamp",
        "topic",
        "value",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
        delivery: int,
        wait_id: str | Callable[[], str],
        group: str,
        expires_at: datetime | None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers
        self.delivery = delivery
        self._wait_id = wait_id
        self.group = group
        self.expires_at = expires_at

    def __repr__(self) -> str:
        return f"Record({self.topic}[{self.partition}]@{self.offset}, delivery {self.delivery}, wait_id {self.wait_id})"

    @property
    def wait_id(self) -> str:
        """The key of the registration, an idempotency key; computed when it is first needed."""
        return self._wait_id if isinstance(self._wait_id, str) else self._wait_id()


@dataclass(frozen=True, slots=True)
class Discard:
    """A handler's result for a record that needs no work; ``reason`` is logged, and metrics count the record."""

    reason: str


HandlerResult = None | Discard
AsyncHandler = Callable[[Record], Awaitable[HandlerResult]]
PlainHandler = Callable[[Record], HandlerResult]
