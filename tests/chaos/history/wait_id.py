"""The id that a record must have in the wait topic, derived without the product's code."""

from __future__ import annotations

import hashlib
import uuid

from wait_registry.demo.manifest import Coordinates


def derived_wait_id(cluster_id: str, group: str, consumed: Coordinates, timestamp_ms: int) -> str:
    """Return it: a UUID of version 8, 48 bits of time and 74 of a hash around version and variant."""
    topic, partition, offset = consumed
    text = f"waitreg1\n{cluster_id}\n{topic}\n{partition}\n{offset}\n{group}"
    bits = int.from_bytes(hashlib.sha256(text.encode()).digest(), "big") >> (256 - 74)
    time = min(max(timestamp_ms, 0), 2**48 - 1)
    number = time << 80 | 8 << 76 | (bits >> 62) << 64 | 0b10 << 62 | bits & (2**62 - 1)
    return str(uuid.UUID(int=number))
