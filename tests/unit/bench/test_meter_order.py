"""How the processor's handler is told what to measure, and how its marks come out of the process."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from bench.contenders.metered_handler import HANDLER, VARIABLE, Marks, MeteredHandler, MeterOrder
from bench.contenders.payload import call_ms, sent_ns, value_of
from processor.handlers.loading import load_handler
from wait_registry.handler import Record
from wait_registry.settings.processor import ProcessorSettings


def record(value: bytes) -> Record:
    """Return a record with this value."""
    return Record("orders", 0, 1, 0, None, value, (), 1, "id", "shop", datetime(2030, 1, 1, tzinfo=UTC))


def test_an_order_survives_the_environment() -> None:
    order = MeterOrder("timed", Path("/somewhere/marks"), [1, 20, 400], 50)
    assert MeterOrder.of(order.as_environment()) == order


@pytest.mark.parametrize(
    ("marks", "every", "expected"),
    [([1, 20, 100], 0, [1, 20, 100]), ([1], 50, [1, 50, 100, 150]), ([], 3, [3, 6, 9, 12]), ([50], 50, [50, 100])],
)
def test_marks_stand_at_the_given_calls_and_at_multiples_behind_the_last(
    marks: list[int], every: int, expected: list[int]
) -> None:
    found = MeterOrder("noop", Path("marks"), marks, every).counts()
    assert list(islice(found, len(expected))) == expected


@pytest.mark.parametrize("handler", ["noop", "timed", "latency"])
def test_the_processor_loads_the_handler_and_its_marks_can_be_read_bit_by_bit(
    handler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = MeterOrder(handler, tmp_path / "marks", [1, 3])
    for name, value in order.as_environment().items():
        monkeypatch.setenv(name, value)
    assert VARIABLE in order.as_environment()
    marks = Marks(order.file)
    assert marks.read() == []

    async def play() -> None:
        opened = load_handler(ProcessorSettings(handler=HANDLER))
        await opened.open()
        await opened.call(record(value_of(1, 5, b"")))
        assert [mark.calls for mark in marks.read()] == [1]
        for _ in range(3):
            await opened.call(record(value_of(1, 5, b"")))
        await opened.close()

    asyncio.run(play())
    assert [mark.calls for mark in marks.read()] == [1, 3]
    assert (marks.seen[1].p99_ms is not None) == (handler == "latency")
    assert (marks.seen[1].calls_ns > 0) == (handler == "timed")
    assert marks.seen[1].ordered_ms == (3 if handler == "timed" else 0)


@pytest.mark.parametrize("handler", ["noop", "timed", "latency"])
def test_no_call_ends_before_the_gate_is_open(handler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = MeterOrder(handler, tmp_path / "marks", [1, 3], gated=True)
    for name, value in order.as_environment().items():
        monkeypatch.setenv(name, value)

    async def play() -> None:
        opened = load_handler(ProcessorSettings(handler=HANDLER))
        await opened.open()
        calls = [asyncio.ensure_future(opened.call(record(value_of(1, 5, b"")))) for _ in range(3)]
        await asyncio.wait(calls, timeout=0.1)
        assert order.has_arrived()
        assert not any(call.done() for call in calls)
        order.open_gate()
        await asyncio.gather(*calls)
        await opened.close()

    asyncio.run(play())
    assert [mark.calls for mark in Marks(order.file).read()] == [1, 3]


def test_what_is_half_written_is_left_for_the_next_time(tmp_path: Path) -> None:
    file = tmp_path / "marks"
    line = (
        b'{"calls":1,"clock_ns":2,"cpu_ns":3,"calls_ns":4,"ordered_ms":8,"busy_ns":5,"rss_bytes":6,'
        b'"peak_rss_bytes":7,"p50_ms":null,"p99_ms":null}\n'
    )
    marks = Marks(file)
    file.write_bytes(line + line[:20])
    assert len(marks.read()) == 1
    file.write_bytes(line + line)
    assert len(marks.read()) == 2


def test_entering_gives_what_was_ordered_and_the_class_itself_handles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in MeterOrder("noop", tmp_path / "marks", [1]).as_environment().items():
        monkeypatch.setenv(name, value)
    assert asyncio.run(MeteredHandler().handle(record(b""))) is None
    assert not (tmp_path / "marks").exists()


def test_a_value_says_how_long_its_call_takes_and_when_it_was_published() -> None:
    value = value_of(1000, 1_795_227_600_123_456_789, b"filler")
    assert value == b"0000100001795227600123456789filler"
    assert (call_ms(value), sent_ns(value)) == (1000, 1_795_227_600_123_456_789)
