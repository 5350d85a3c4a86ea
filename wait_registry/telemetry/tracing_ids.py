"""Ids that any process can work out again, so that a record's deliveries find each other without any state.

A record that comes without a trace starts one. When it expires and is delivered again, another process traces it, and
its headers are as they were: only what was computed from the record itself leads to the same trace.
"""

from __future__ import annotations

import threading
from hashlib import sha256
from typing import NamedTuple

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original


class FirstDelivery(NamedTuple):
    """What names a record for one group, however often it is delivered."""

    topic: str
    partition: int | None
    offset: int | None
    timestamp_ms: int | None
    group: str | None

    @classmethod
    def of(cls, original: Original, group: str) -> FirstDelivery:
        """Take it from a consumed record."""
        return cls(original.topic, original.partition, original.offset, original.timestamp_ms, group)

    @classmethod
    def of_lineage(cls, lineage: Lineage) -> FirstDelivery:
        """Take it from the block that a published record carries."""
        return cls(
            lineage.original_topic,
            lineage.original_partition,
            lineage.original_offset,
            lineage.original_timestamp_ms,
            lineage.group,
        )

    def trace_id(self) -> int:
        """Return the id of the trace that a record without one starts (128 bits, as good as random for samplers)."""
        return int.from_bytes(self._digest("trace")[:16])

    def redelivery_span_id(self, delivery: int) -> int:
        """Return the id of the sweeper's span of the redelivery that made this ``delivery``, from 2."""
        return int.from_bytes(self._digest(f"redelivery\n{delivery}")[:8])

    def _digest(self, what: str) -> bytes:
        return sha256("\n".join(("waitreg1", what, *map(str, self))).encode("utf-8", "surrogatepass")).digest()


class ChosenIds(RandomIdGenerator):
    """Random ids, but for the next span of this thread when some were chosen."""

    def __init__(self) -> None:
        self._chosen = threading.local()

    def choose(self, trace_id: int | None, span_id: int | None) -> None:
        """Choose the ids of the next span; None leaves one to chance. A span with a parent keeps the parent's trace."""
        self._chosen.trace_id = trace_id
        self._chosen.span_id = span_id

    def generate_trace_id(self) -> int:
        """Return the chosen trace id, once, or a random one."""
        chosen: int | None = getattr(self._chosen, "trace_id", None)
        self._chosen.trace_id = None
        return chosen or super().generate_trace_id()

    def generate_span_id(self) -> int:
        """Return the chosen span id, once, or a random one."""
        chosen: int | None = getattr(self._chosen, "span_id", None)
        self._chosen.span_id = None
        return chosen or super().generate_span_id()
