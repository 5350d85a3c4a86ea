"""Shifts the wall clock of a Python process: with this folder on PYTHONPATH Python imports it before anything else.

The file that SHIFTED_CLOCK names holds by how much (a double, s), which may change while the process runs: the clock
steps. What reads the wall clock through ``time`` and ``datetime`` sees it, and so do the timestamps that producers of
confluent-kafka give to records. Monotonic clocks, other C code and other programs (Spark's JVM, Postgres) don't.
"""

import datetime
import mmap
import os
import struct
import time
from typing import Any

_FORMAT = struct.Struct("d")


_RealDatetime = datetime.datetime


class _IsInstance(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _RealDatetime)


class _ShiftedDatetime(_RealDatetime, metaclass=_IsInstance):
    """Its clock is shifted; the values that it makes are of the real class."""

    __slots__ = ()

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return _RealDatetime.fromtimestamp(time.time(), tz)


def _shift(path: str) -> None:
    with open(path, "rb") as file:  # noqa: PTH123 - nothing may be imported that has taken the clock by then
        shared = mmap.mmap(file.fileno(), _FORMAT.size, access=mmap.ACCESS_READ)
    real_time, real_time_ns = time.time, time.time_ns

    def offset_s() -> float:
        return float(_FORMAT.unpack_from(shared)[0])

    time.time = lambda: real_time() + offset_s()
    time.time_ns = lambda: real_time_ns() + int(offset_s() * 1e9)
    datetime.datetime = _ShiftedDatetime  # type: ignore[misc]
    _shift_records()


def _shift_records() -> None:
    import confluent_kafka

    class ShiftedProducer(confluent_kafka.Producer):  # type: ignore[misc]
        def produce(self, *arguments: Any, timestamp: int = 0, **named: Any) -> None:
            super().produce(*arguments, timestamp=timestamp or time.time_ns() // 1_000_000, **named)

    confluent_kafka.Producer = ShiftedProducer


if "SHIFTED_CLOCK" in os.environ:
    _shift(os.environ["SHIFTED_CLOCK"])
