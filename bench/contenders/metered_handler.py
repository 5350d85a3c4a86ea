"""The handler that a `waitreg processor` is measured with, and how its meter's marks come out of the process.

Loaded as any user's handler is (`bench.contenders.metered_handler:MeteredHandler`). What it does and where it writes
its marks stands in the environment, since the processor has no setting for either.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Final, TextIO

from bench.contenders.meter import MS_PER_S, Mark, Meter
from bench.contenders.payload import call_ms, sent_ns
from wait_registry.handler import Record

HANDLER: Final = "bench.contenders.metered_handler:MeteredHandler"
VARIABLE: Final = "BENCH_METER"
GATE_POLL_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class MeterOrder:
    """What the handler does and when it makes marks.

    Attributes:
        handler: `noop`, `timed` or `latency`.
        file: gets a line of JSON for each mark.
        marks: counts of calls at which one is made, growing.
        every: after the last of them one is made at each multiple of this; 0 for none.
        beside_pid: a process whose processor time stands on each mark too; 0 for none.
        gated: whether no call ends before `open_gate`: processes of one group that are to begin together.
    """

    handler: str
    file: Path
    marks: Sequence[int]
    every: int = 0
    beside_pid: int = 0
    gated: bool = False

    def as_environment(self) -> dict[str, str]:
        """Return the variable that says so."""
        return {VARIABLE: json.dumps(asdict(self) | {"file": str(self.file)})}

    @staticmethod
    def of(environment: Mapping[str, str]) -> MeterOrder:
        """Return what the variable says; KeyError without it."""
        order = json.loads(environment[VARIABLE])
        return MeterOrder(**order | {"file": Path(order["file"])})

    @property
    def _arrived(self) -> Path:
        return self.file.with_suffix(".arrived")

    @property
    def _gate(self) -> Path:
        return self.file.with_suffix(".open")

    def has_arrived(self) -> bool:
        """Return whether a first call waits for the gate."""
        return self._arrived.exists()

    def open_gate(self) -> None:
        """Let all calls go on."""
        self._gate.touch()

    async def pass_gate(self) -> None:
        """Wait until the gate is open."""
        self._arrived.touch()
        while not self._gate.exists():  # noqa: ASYNC110 - the other side is a process
            await asyncio.sleep(GATE_POLL_S)

    def counts(self) -> Iterator[int]:
        """Return the counts of calls at which a mark is made."""
        yield from self.marks
        if self.every:
            last = self.marks[-1] if self.marks else 0
            yield from count(self.every * (last // self.every + 1), self.every)


class MeteredHandler:
    """What `processor.handler` names: entering it gives the handler that was ordered."""

    def __init__(self) -> None:
        self._order = MeterOrder.of(os.environ)
        self._file: TextIO | None = None

    async def __aenter__(self) -> _Handler:
        self._file = self._order.file.open("a", encoding="ascii")
        meter = Meter(self._order.counts(), self._write, self._order.beside_pid)
        return {"noop": _Noop, "timed": _Timed, "latency": _Latency}[self._order.handler](meter, self._order)

    async def __aexit__(self, *of_no_interest: object) -> None:
        if self._file is not None:
            self._file.close()

    async def handle(self, record: Record) -> None:
        """Stand here for the processor's check of the class; never called."""

    def _write(self, mark: Mark) -> None:
        assert self._file is not None
        self._file.write(json.dumps(mark.as_json()) + "\n")
        self._file.flush()


class _Handler:
    """Makes the same calls as `bench.contenders.calls`, on the record itself: no second coroutine stands in between."""

    def __init__(self, meter: Meter, order: MeterOrder) -> None:
        self._meter = meter
        self._order = order
        self._waits = order.gated

    async def _pass_gate(self) -> None:
        await self._order.pass_gate()
        self._waits = False


class _Noop(_Handler):
    async def handle(self, record: Record) -> None:
        if self._waits:
            await self._pass_gate()
        self._meter.count()


class _Timed(_Handler):
    async def handle(self, record: Record) -> None:
        assert record.value is not None
        if self._waits:
            await self._pass_gate()
        ordered_ms = call_ms(record.value)
        began_ns = self._meter.began()
        await asyncio.sleep(ordered_ms / MS_PER_S)
        self._meter.ended(began_ns, ordered_ms)


class _Latency(_Handler):
    async def handle(self, record: Record) -> None:
        assert record.value is not None
        if self._waits:
            await self._pass_gate()
        self._meter.note(time.time_ns() - sent_ns(record.value))


class Marks:
    """The marks that a process has written so far, read from its file bit by bit."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._position = 0
        self.seen: list[Mark] = []

    def read(self) -> list[Mark]:
        """Return all that there are by now; a line that is still being written is left for the next time."""
        if self._file.exists():
            with self._file.open("rb") as file:
                file.seek(self._position)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._position += len(whole)
            self.seen += [Mark(**json.loads(line)) for line in whole.splitlines()]
        return self.seen
