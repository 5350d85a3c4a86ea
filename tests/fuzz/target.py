"""One fuzz target: a reader, what it must do with any bytes, where to begin, and what reading may take."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Target:
    """``read`` is the product alone, its own refusals caught: time and memory are measured on it.

    ``check`` raises AssertionError, or whatever the product raised, for a fault. ``seeds`` are inputs to begin with,
    ``words`` what is worth putting in. ``records``: the inputs are those of `tests.fuzz.record_bytes`.
    """

    name: str
    read: Callable[[bytes], object]
    check: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    words: tuple[bytes, ...] = ()
    records: bool = False
    share: float = 1.0


# An object is 56 bytes at least and "[]," takes three in JSON; what a first call imports and caches is in the base.
BYTES_PER_BYTE = 64
BASE_BYTES = 2 * 1024 * 1024
# Far above what is ever seen: what it finds is time that grows with the square of the input, or a hang.
SECONDS_PER_BYTE = 1e-5
BASE_SECONDS = 2.0


def require_bounded(target: Target, data: bytes) -> None:
    """Read an input and measure it.

    Raises:
        AssertionError: it took more than its size allows.
    """
    tracemalloc.start()
    try:
        began = time.process_time()
        target.read(data)
        took_s = time.process_time() - began
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= BASE_BYTES + BYTES_PER_BYTE * len(data), f"{peak} bytes of memory for {len(data)} of input"
    assert took_s <= BASE_SECONDS + SECONDS_PER_BYTE * len(data), f"{took_s:.2f} s for {len(data)} bytes"
