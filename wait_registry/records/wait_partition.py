"""The partitions of the wait topic in which records are registered."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_WORD: Final = 0xFFFF_FFFF
_POSITIVE: Final = 0x7FFF_FFFF
_LENGTH: Final = 36
_WORDS: Final = _LENGTH // 4


def wait_partitions(wait_ids: Sequence[str], partitions: int) -> list[int]:
    """Return where every producer puts wait ids: murmur2 of the key, as Java's default partitioner takes it.

    Computed here, and not left to the client: that one counts the partitions that the topic has now, so that a key
    would move when some are added, away from an earlier wait record of its own.

    For all ids together, which lie side by side in long integers, so that each step of the hash is one operation: a
    word of 4 bytes in a lane of 8, which its product with another word doesn't leave. One by one they would take four
    times as long, and a tenth of what the processor does for a record (docs/decisions/0017).

    :param partitions: of the wait topic, as the settings say (``wait.partitions``).
    :raises ValueError: they aren't 36 ASCII characters each, so not wait ids.
    """
    words, count = array("I", "".join(wait_ids).encode()), len(wait_ids)
    if len(words) != count * _WORDS:
        raise ValueError(f"saw {4 * len(words)} bytes in {count} ids, expected {_LENGTH} in each")
    if sys.byteorder == "big":
        words.byteswap()
    word = _lanes([_WORD] * count)
    hashed = _lanes([_SEED ^ _LENGTH] * count)
    for number in range(_WORDS):
        mixed = _lanes(words[number::_WORDS]) * _M & word
        hashed = hashed * _M & word ^ (mixed ^ mixed >> 24 & word) * _M & word
    hashed = (hashed ^ hashed >> 13 & word) * _M & word
    positive = array("Q", (hashed ^ hashed >> 15).to_bytes(8 * count, sys.byteorder))
    return [(each & _POSITIVE) % partitions for each in positive]


def _lanes(words: Sequence[int]) -> int:
    return int.from_bytes(array("Q", words).tobytes(), sys.byteorder)
