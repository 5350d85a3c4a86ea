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
    """Return the partitions of wait IDs: murmur2 of the key, as in Java's default partitioner.

    The client's own partitioner counts the partitions that the topic has now, so a key would move away from its earlier
    wait record when partitions are added.

    All IDs are hashed together, side by side in long integers: a word of 4 bytes in a lane of 8, so that a product
    stays in its lane. One by one takes four times as long, a tenth of the processor's cost per record
    (docs/decisions/0017).

    Args:
        partitions: of the wait topic, as the settings say (``wait.partitions``).

    Raises:
        ValueError: an ID isn't 36 ASCII characters.
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
