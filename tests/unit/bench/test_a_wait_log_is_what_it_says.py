"""What the benchmark writes to a wait topic: real records, in the order that a row's text promises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.contenders.wait_log import GROUP, INSTANCE, Registrations, WaitLog
from wait_registry.records.wait_record import WaitRecordEncoder, decode_wait_record

NOW_MS = 1_800_000_000_000

logs = st.builds(
    WaitLog,
    topic=st.just("wait"),
    waits=st.integers(1, 300),
    tombstone_after=st.integers(0, 200),
    left_open_every=st.integers(0, 7),
)


@given(logs)
def test_each_wait_comes_once_and_each_but_those_left_open_is_resolved_after_it(log: WaitLog) -> None:
    written = list(log.order())
    waits = [index for index, is_wait in written if is_wait]
    tombstones = [index for index, is_wait in written if not is_wait]
    assert waits == list(range(log.waits))
    assert tombstones == [index for index in range(log.waits) if log.is_resolved(index)]
    assert all(written.index((index, True)) < written.index((index, False)) for index in tombstones)


@given(logs)
def test_it_has_as_many_records_and_leaves_as_many_open_as_it_says(log: WaitLog) -> None:
    written = list(log.order())
    assert len(written) == log.records
    assert len(written) - 2 * sum(not is_wait for _, is_wait in written) == log.left_open


def test_a_tombstone_comes_as_many_records_later_as_asked_for() -> None:
    written = list(WaitLog("wait", waits=5_000, tombstone_after=1_000).order())
    place = {record: number for number, record in enumerate(written)}
    distances = {place[index, False] - place[index, True] for index in range(500, 4_500)}
    assert distances == {1_001}


@pytest.mark.parametrize("left_open_every", [0, 10])
def test_waits_and_tombstones_alternate_in_the_stretch_that_is_measured(left_open_every: int) -> None:
    log = WaitLog("wait", waits=2_000, tombstone_after=600, left_open_every=left_open_every)
    first, last = log.mixed
    within = [is_wait for _, is_wait in list(log.order())[first:last]]
    assert sum(within) == log.waits - log.waits_ahead
    assert not any(is_wait for _, is_wait in list(log.order())[last:])


@given(st.integers(0, 10_000_000))
def test_a_wait_record_is_what_the_processor_would_write(index: int) -> None:
    log = WaitLog("wait", waits=1)
    made = Registrations(log, NOW_MS)
    original, key = made.original(index), made.wait_id(index)
    encoder = WaitRecordEncoder(GROUP, INSTANCE, log.dead_letter_topic, "dlq", 3)
    assert made.headers(index, key) == encoder.headers(original, key, made.expires_at_ms)
    read = decode_wait_record(key, made.value(index), made.headers(index, key))
    assert read.original == original
    assert len(made.value(index)) == log.value_bytes


def test_ids_come_in_their_order_of_time_and_differ_between_topics() -> None:
    one, other = Registrations(WaitLog("one", 1), NOW_MS), Registrations(WaitLog("other", 1), NOW_MS)
    ids = [one.wait_id(index) for index in range(0, 100_000, 50)]
    assert ids == sorted(ids)
    assert one.wait_id(0) != other.wait_id(0)
