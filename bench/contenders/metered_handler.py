"""The handler that a `waitreg processor` is measured with, and how its meter's marks leave the process.

Loaded as any user's handler is, by any checkout. What it does is in an environment variable, since the processor has no
setting for it. It imports nothing of the product.
"""

from __future__ import annotations

import asyncio
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
GATE_POLL_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class MeterOrder:
    """What the handler does, and at which counts of calls it writes a mark to the file, as a line of JSON.

    After the last of `marks` it writes one at each multiple of `every`; 0 for none. If `gated`, no call ends before
    `open_gate`: processes of one group begin together.
    """

    handler: str
    file: str
    marks: Sequence[int]
    every: int = 0
    broker_pid: int = 0
    gated: bool = False

    def as_environment(self) -> dict[str, str]:
        """Return the variable that says so."""
        return {VARIABLE: json.dumps(asdict(self))}

    def has_arrived(self) -> bool:
        """Return whether a first call waits for the gate."""
        return Path(f"{self.file}.arrived").exists()

    def open_gate(self) -> None:
        """Let all calls continue."""
        Path(f"{self.file}.open").touch()

    async def pass_gate(self) -> None:
        """Wait until the gate is open."""
        Path(f"{self.file}.arrived").touch()  # noqa: ASYNC240 - once, before anything is measured
        while not Path(f"{self.file}.open").exists():  # noqa: ASYNC110, ASYNC240 - the other side is a process
            await asyncio.sleep(GATE_POLL_S)

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

    async def __aenter__(self) -> _Handler:
        meter = Meter(self._order.counts(), self._write, self._order.broker_pid)
        kind = _Noop if self._order.handler == "noop" else _Handler
        return kind(async_call(self._order.handler, meter), meter.count, self._order)

    async def __aexit__(self, *_: object) -> None:
        self._file.close()

    async def handle(self, record: Record) -> None:
        """Stand here for the processor's check of the class; never called."""

    def _write(self, mark: Mark) -> None:
        self._file.write(json.dumps(asdict(mark)) + "\n")
        self._file.flush()


class _Handler:
    """Makes the same calls as all other contenders."""

    def __init__(self, call: AsyncCall, count_call: Callable[[], None], order: MeterOrder) -> None:
        self._call = call
        self._count = count_call
        self._order = order
        self._waits = order.gated

    async def handle(self, record: Record) -> None:
        if self._waits:
            await self._pass_gate()
        await self._call(record.value or b"")

    async def _pass_gate(self) -> None:
        await self._order.pass_gate()
        self._waits = False


class _Noop(_Handler):
    """Does nothing, and without a second coroutine in between: that would cost more than the call."""

    async def handle(self, record: Record) -> None:
        if self._waits:
            await self._pass_gate()
        self._count()
