"""Which kinds of request a client of Kafka has sent on a connection, from the bytes that pass."""

from __future__ import annotations

import struct
from typing import Final

PRODUCE: Final = 0
# Length of what follows, then the API key: all that is looked at.
_HEAD = struct.Struct(">ih")
_KEY_BYTES: Final = 2


class Requests:
    """Follows the frames of one connection from its first byte on; of another protocol it tells nonsense."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        """API keys of all requests that have begun."""
        self._head = bytearray()
        self._left = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere."""
        at = 0
        while at < len(data):
            if self._left:
                step = min(self._left, len(data) - at)
                self._left -= step
            else:
                step = min(_HEAD.size - len(self._head), len(data) - at)
                self._head += data[at : at + step]
                self._begin()
            at += step

    def _begin(self) -> None:
        if len(self._head) == _HEAD.size:
            length, api_key = _HEAD.unpack(self._head)
            self.seen.add(api_key)
            self._left = max(length - _KEY_BYTES, 0)
            self._head.clear()
