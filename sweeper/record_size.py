"""How large a record becomes on the broker, estimated from above before anything is sent."""

from __future__ import annotations

from collections.abc import Sequence

# Record batch format v2 (KIP-98): 61 bytes a batch; a record's attributes, deltas, lengths and counts are variable
# integers of at most 5 bytes, 10 for the timestamp delta.
BATCH_OVERHEAD = 61
RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5
HEADER_OVERHEAD = 10


def record_size(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int:
    """Return the size of a batch with this record alone and no compression, bytes, never less than it will be.

    A record that only compression would bring below the topic's limit counts as too large: whether it would can't be
    known before it is sent, and a refused record costs the whole transaction.
    """
    size = BATCH_OVERHEAD + RECORD_OVERHEAD + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += HEADER_OVERHEAD + (len(name) if name.isascii() else len(name.encode())) + len(content or b"")
    return size
