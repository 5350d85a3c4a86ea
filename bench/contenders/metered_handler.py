"""The handler that a `waitreg processor` is measured with, and how its meter's marks leave the process.

Loaded as any user's handler is, by any checkout. What it does is in an environment variable, since the processor has no
setting for it. It imports nothing of the product.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from bench.contenders.flow_program import AsyncCall, async_call
from bench.contenders.meter import Mark, Meter

if TYPE_CHECKING:
    from wait_registry.handler import Record

HANDLER: Final = "bench.contenders.metered_handler:MeteredHandler"
VARIABLE: Final = "BENCH_METER"


@dataclass(frozen=True, slots=True)
class MeterOrder:
    """What the handler does, and at which counts of calls it writes a mark to the file, as a line of JSON.

    After the last of `marks` it writes one at each multiple of `every`; 0 for none.
    """

    handler: str
    file: str
    marks: Sequence[int]
    every: int = 0
    broker_pid: int = 0

    def as_environment(self) -> dict[str, str]:
        """Return the variable that says so."""
        return {VARIABLE: json.dumps(asdict(self))}

    def counts(self) -> Iterator[int]:
        """Return the counts of calls at which a mark is made."""
        yield from self.marks
        if self.every:
            yield from count(self.every * (self.marks[-1] // self.every + 1), self.every)

    def written(self) -> list[Mark]:
        """Return the marks so far; a line that is still being written is left for the next time."""
        text = Path(self.file).read_bytes() if Path(self.file).exists() else b""
        return [Mark(**json.loads(line)) for line in text[: text.rfind(b"\n") + 1].splitlines()]


class MeteredHandler:
    """What `processor.handler` names: entering it returns the handler that was ordered."""

    def __init__(self) -> None:
        self._order = MeterOrder(**json.loads(os.environ[VARIABLE]))
        self._file: TextIO = Path(self._order.file).open("a", encoding="ascii")  # noqa: SIM115 - closed by __aexit__

    async def __aenter__(self) -> _Handler | _Noop:
        meter = Meter(self._order.counts(), self._write, self._order.broker_pid)
        return _Noop(meter.count) if self._order.handler == "noop" else _Handler(async_call(self._order.handler, meter))

    async def __aexit__(self, *_: object) -> None:
        self._file.close()

    async def handle(self, record: Record) -> None:
        """Stand here for the processor's check of the class; never called."""

    def _write(self, mark: Mark) -> None:
        self._file.write(json.dumps(asdict(mark)) + "\n")
        self._file.flush()


class _Handler:
    """Makes the same calls as all other contenders."""

    def __init__(self, call: AsyncCall) -> None:
        self._call = call

    async def handle(self, record: Record) -> None:
        await self._call(record.value or b"")


class _Noop:
    """Does nothing, and without a second coroutine in between: that would cost more than the call."""

    def __init__(self, count_call: Callable[[], None]) -> None:
        self._count = count_call

    async def handle(self, record: Record) -> None:
        self._count()
