"""P3, P6: what was read is written in order, each record once, however reading and writing take turns."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from sink.hand_over import GATHER_S, Gathered, HandOver
from sink.position import TopicPartition
from tests.support.waiting import wait_until
from tests.unit.sink.batches import Row, batch_of

PLACE = TopicPartition("wait", 0)
DEADLINE_S = 10.0


class Writer:
    """Writes when it is let, and keeps the offsets of each transaction."""

    def __init__(self) -> None:
        self.written: list[list[int]] = []
        self.ends: list[int] = []
        self.began = threading.Semaphore(0)
        self.let = threading.Semaphore(0)
        self.error: Exception | None = None

    def __call__(self, gathered: Gathered) -> None:
        self.began.release()
        assert self.let.acquire(timeout=DEADLINE_S)
        if self.error is not None:
            raise self.error
        self.written.append(gathered.take()["offset"].to_pylist())
        self.ends.append(gathered.ends[PLACE])


@pytest.fixture
def writer() -> Writer:
    return Writer()


@pytest.fixture
def hand_over(writer: Writer) -> Iterator[HandOver]:
    with HandOver(writer, max_records=4, max_bytes=10**6, name="test") as hand_over:
        yield hand_over
        writer.let.release(100)


def put(hand_over: HandOver, first: int, beyond: int, *, more: bool, began: float | None = None) -> None:
    rows = [Row(b"k", b"v", partition=0, offset=offset) for offset in range(first, beyond)]
    hand_over.put(batch_of(rows), {PLACE: beyond}, time.monotonic() if began is None else began, more=more)


def putting(hand_over: HandOver, first: int, beyond: int) -> threading.Thread:
    thread = threading.Thread(target=put, args=(hand_over, first, beyond), kwargs={"more": True}, daemon=True)
    thread.start()
    return thread


def test_what_comes_while_a_batch_is_written_is_written_together_behind_it(hand_over: HandOver, writer: Writer) -> None:
    put(hand_over, 0, 1, more=False)
    assert writer.began.acquire(timeout=DEADLINE_S)
    put(hand_over, 1, 2, more=False)
    put(hand_over, 2, 4, more=False)
    writer.let.release(2)
    wait_until(lambda: len(writer.written) == 2, DEADLINE_S, "both transactions")
    assert writer.written == [[0], [1, 2, 3]]
    assert writer.ends == [1, 4]


def test_while_more_waits_batches_are_gathered_until_they_are_full(hand_over: HandOver, writer: Writer) -> None:
    put(hand_over, 0, 2, more=True)
    put(hand_over, 2, 3, more=True)
    assert not writer.began.acquire(timeout=0.05)
    put(hand_over, 3, 4, more=True)
    assert writer.began.acquire(timeout=DEADLINE_S)
    writer.let.release()
    wait_until(lambda: writer.written == [[0, 1, 2, 3]], DEADLINE_S, "one transaction of all")


def test_what_the_next_batch_does_not_fit_to_is_written_and_never_more_than_fits(
    hand_over: HandOver, writer: Writer
) -> None:
    put(hand_over, 0, 3, more=True)
    writer.let.release(2)
    put(hand_over, 3, 5, more=False)
    wait_until(lambda: len(writer.written) == 2, DEADLINE_S, "both transactions")
    assert writer.written == [[0, 1, 2], [3, 4]]


def test_a_batch_that_is_larger_than_all_that_fits_is_written_by_itself(hand_over: HandOver, writer: Writer) -> None:
    writer.let.release(2)
    put(hand_over, 0, 9, more=True)
    put(hand_over, 9, 10, more=False)
    wait_until(lambda: writer.written == [list(range(9)), [9]], DEADLINE_S, "both transactions")


def test_what_has_waited_long_enough_is_written_although_more_waits(hand_over: HandOver, writer: Writer) -> None:
    writer.let.release()
    put(hand_over, 0, 1, more=True, began=time.monotonic() - GATHER_S)
    wait_until(lambda: writer.written == [[0]], DEADLINE_S, "the transaction")


@pytest.mark.guarantee("P7.14")
def test_reading_waits_for_room(hand_over: HandOver, writer: Writer) -> None:
    put(hand_over, 0, 4, more=True)
    assert writer.began.acquire(timeout=DEADLINE_S)
    put(hand_over, 4, 8, more=True)
    reader = putting(hand_over, 8, 9)
    reader.join(0.05)
    assert reader.is_alive(), "a full batch waits behind the one that is being written"
    writer.let.release()
    reader.join(DEADLINE_S)
    assert not reader.is_alive()


@pytest.mark.guarantee("P6.11")
def test_what_ends_the_writing_is_told_and_nothing_is_written_behind_it(hand_over: HandOver, writer: Writer) -> None:
    writer.error = RuntimeError("the connection broke")
    put(hand_over, 0, 4, more=True)
    assert writer.began.acquire(timeout=DEADLINE_S)
    put(hand_over, 4, 8, more=True)
    reader = putting(hand_over, 8, 9)
    writer.let.release()
    reader.join(DEADLINE_S)
    assert not reader.is_alive(), "a reader isn't left waiting"
    with pytest.raises(RuntimeError, match="the connection broke"):
        hand_over.check()
    writer.error = None
    writer.let.release()
    put(hand_over, 9, 10, more=False)
    assert hand_over.finish(DEADLINE_S)
    assert not writer.began.acquire(timeout=0.2)
    assert writer.written == []


def test_finishing_writes_the_rest_and_takes_nothing_more(hand_over: HandOver, writer: Writer) -> None:
    put(hand_over, 0, 1, more=True)
    assert not hand_over.finish(0.05)
    put(hand_over, 1, 2, more=True)
    writer.let.release(2)
    assert hand_over.finish(DEADLINE_S)
    assert writer.written == [[0]]


def test_closing_waits_for_what_is_written_and_drops_the_rest(writer: Writer) -> None:
    with HandOver(writer, max_records=4, max_bytes=10**6, name="test") as hand_over:
        put(hand_over, 0, 4, more=True)
        assert writer.began.acquire(timeout=DEADLINE_S)
        put(hand_over, 4, 5, more=False)
        closing = threading.Thread(target=hand_over.close, daemon=True)
        closing.start()
        closing.join(0.05)
        assert closing.is_alive()
        writer.let.release(2)
        closing.join(DEADLINE_S)
        assert not closing.is_alive()
    assert writer.written == [[0, 1, 2, 3]]


def test_a_batch_of_many_bytes_is_full_too(writer: Writer) -> None:
    writer.let.release()
    with HandOver(writer, max_records=10**6, max_bytes=1, name="test") as hand_over:
        put(hand_over, 0, 1, more=True)
        wait_until(lambda: writer.written == [[0]], DEADLINE_S, "the transaction")
