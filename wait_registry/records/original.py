"""An original record as first delivered, and where it was consumed now."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from wait_registry.records import header_names
from wait_registry.records.headers import Headers

TimestampType: TypeAlias = Literal["create", "append", "none"]

# Indexed by the timestamp type of librdkafka (and so of confluent_kafka's Message.timestamp()[0]).
TIMESTAMP_TYPES: Final[tuple[TimestampType, ...]] = ("none", "create", "append")


# Named tuples cost a third of frozen dataclasses; they are built once per consumed record.
class Original(NamedTuple):
    """One record of an input topic: ``timestamp_ms`` is -1 if it has none; key and value may be null or empty."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers


class Source(NamedTuple):
    """Where a record that this system delivered again was consumed now."""

    topic: str
    partition: int
    offset: int

    def headers(self) -> list[tuple[str, bytes | None]]:
        """Return it as headers of a wait record or of a lineage block."""
        return [
            (header_names.SOURCE_TOPIC, self.topic.encode()),
            (header_names.SOURCE_PARTITION, b"%d" % self.partition),
            (header_names.SOURCE_OFFSET, b"%d" % self.offset),
        ]


class PartialOriginal(NamedTuple):
    """An original from a wait record in the legacy format; fields that it lacks are None."""

    topic: str
    partition: int | None
    offset: int | None
    timestamp_ms: int | None
    timestamp_type: TimestampType | None
    key: bytes | None
    value: bytes | None
    headers: Headers
