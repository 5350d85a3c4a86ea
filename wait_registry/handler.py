"""The public contract of handlers: the record that they get, and the results that they may return.

A handler is ``async def handle(record)``, a plain function (run in a thread) or a class that is an async context
manager with such a method ``handle``, opened once per process. ``None`` means done. ``Discard(reason)`` means that
the record needs no work. After a ``TransientError``, ``TimeoutError`` or other ``OSError``, the handler is called
again, in the process and then from the retry topics. Any other exception, and any other result, dead-letters the
record at once.

If the first parameter is annotated with another type than `Record`, the value is decoded to that type: a pydantic
model or dataclass (from JSON, or from Avro as ``Annotated[Order, Avro]``), or a Protobuf message class. The record is
the second parameter, if the handler has one. A value that can't be decoded is dead-lettered as ``malformed`` without a
call.

Delivery is at least once: the handler may get the same record again, after a failure, a crash or a rebalance. Its
``idempotency_key`` is the same each time, unless an operator edited the record. Send it to the services that the
handler calls, unless the record has an ID of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from wait_registry.errors import PermanentError, TransientError
from wait_registry.records.original import TimestampType

__all__ = [
    "AsyncHandler",
    "Avro",
    "Discard",
    "HandlerResult",
    "PermanentError",
    "PlainHandler",
    "Record",
    "TransientError",
]


def _read_only(slot: str) -> Any:
    return property(attrgetter(slot))


@dataclass(slots=True, repr=False, eq=False)
class _Fields:
    """What a record has; only the processor sets it."""

    _topic: str
    _partition: int
    _offset: int
    _timestamp: int
    _key: bytes | None
    _value: bytes | None
    _headers: tuple[tuple[str, bytes | None], ...]
    _delivery: int
    _wait_id: str
    _group: str
    _expires_at: datetime | None
    _idempotency_key: str = ""
    _timestamp_type: TimestampType = "create"


class Record(_Fields):
    """One consumed record; it can't be changed.

    In a later delivery it still has the topic, partition, offset and timestamp of the first one.
    """

    __slots__ = ()

    topic: Final[str] = _read_only("_topic")
    """Topic of the first delivery."""
    partition: Final[int] = _read_only("_partition")
    """Partition of the first delivery."""
    offset: Final[int] = _read_only("_offset")
    """Offset of the first delivery."""
    timestamp: Final[int] = _read_only("_timestamp")
    """When the record was published, ms since the epoch; -1 if it has no timestamp."""
    timestamp_type: Final[TimestampType] = _read_only("_timestamp_type")
    """Who set the timestamp: "create" the producer, "append" the broker; "none" if there is no timestamp."""
    key: Final[bytes | None] = _read_only("_key")
    """The key; None is null, not empty."""
    value: Final[bytes | None] = _read_only("_value")
    """The value; None is null, not empty."""
    headers: Final[tuple[tuple[str, bytes | None], ...]] = _read_only("_headers")
    """Names and values, in order."""
    delivery: Final[int] = _read_only("_delivery")
    """The number of this delivery, from 1; the attempts of one delivery don't count."""
    group: Final[str] = _read_only("_group")
    """The consumer group."""

    def __repr__(self) -> str:
        return f"Record({self.topic}[{self.partition}]@{self.offset}, delivery {self.delivery}, wait_id {self.wait_id})"

    @property
    def wait_id(self) -> str:
        """The key of this delivery's registration; a retry or a redelivery has another one."""
        return self._wait_id

    @property
    def idempotency_key(self) -> str:
        """The same in every attempt and delivery: the wait ID of the first delivery, or the key of an edited record."""
        return self._idempotency_key or self.wait_id

    @property
    def expires_at(self) -> datetime | None:
        """When the registration expires (UTC); None while the record isn't registered."""
        return self._expires_at


class Avro:
    """Marks the type of a typed handler's first parameter: ``Annotated[Order, Avro]`` is decoded from Avro.

    The value begins with the ID of its schema in the schema registry (``processor.schema_registry.url``).
    """


@dataclass(frozen=True, slots=True)
class Discard:
    """A handler's result for a record that needs no work; the processor logs ``reason`` and counts the record."""

    reason: str


HandlerResult = None | Discard
AsyncHandler = Callable[[Record], Awaitable[HandlerResult]]
PlainHandler = Callable[[Record], HandlerResult]
