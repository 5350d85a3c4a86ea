"""The partition of the wait topic in which a record is registered."""

from __future__ import annotations

from struct import Struct
from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_MASK: Final = 0xFFFF_FFFF
_POSITIVE: Final = 0x7FFF_FFFF
_LENGTH: Final = 36
_words = Struct("<9I").unpack


def wait_partition(wait_id: str, partitions: int) -> int:
    """Return where every producer puts a wait id: murmur2 of the key, as Java's default partitioner takes it.

    Computed here, and not left to the client: that one counts the partitions that the topic has now, so that a key
    would move when some are added, away from an earlier wait record of its own. Runs once a record: a wait id is always
    nine words, which makes this half as long as murmur2 of any key.

    :param partitions: of the wait topic, as the settings say (``wait.partitions``).
    :raises struct.error: it isn't 36 ASCII characters, so not a wait id.
    """
    hashed = _SEED ^ _LENGTH
    for word in _words(wait_id.encode()):
        mixed = word * _M & _MASK
        hashed = (hashed * _M ^ (mixed ^ mixed >> 24) * _M) & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return ((hashed ^ hashed >> 15) & _POSITIVE) % partitions
