"""What is fuzzed: a reader of this system, what it must do with any bytes, and where to begin."""

from __future__ import annotations

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
