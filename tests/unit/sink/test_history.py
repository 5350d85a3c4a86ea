"""The history: what a row has, what settles a registration, and the folder with its parts."""

from __future__ import annotations

import errno
import os
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink.history.directory import HistoryDirectory, Progress
from sink.history.settled import ENTRIES, ROWS, entries, settle
from tests.unit.sink.batches import Headers, Row, batch_of
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_record import ExpiryRule, LaterDelivery, WaitRecordEncoder

IDS = [f"0198c5a1-0000-8000-8000-{number:012d}" for number in range(3)]
ENCODER = WaitRecordEncoder("payments", "host-1", "orders.dlq", ExpiryRule("dlq", 3))


def registration(wait_id: str, offset: int, partition: int = 0, delivery: int = 1) -> Row:
    original = Original("orders", 3, 41, 1_700_000_000_123, "create", b"4711", b"{}", (("tenant", b"blue"),))
    headers = tuple(
        ENCODER.headers(original, wait_id, 1_795_227_900_000, delivery, LaterDelivery(idempotency_key=IDS[0]))
    )
    return Row(wait_id.encode(), b"{}", partition, offset, 1_000 * offset, headers)


def tombstone(wait_id: str, offset: int, partition: int = 0, outcome: Outcome = Outcome.DONE) -> Row:
    return Row(wait_id.encode(), None, partition, offset, 1_000 * offset, tuple(tombstone_headers(outcome)))


def history(*runs: list[Row]) -> tuple[list[dict[str, Any]], pa.Table]:
    """Return all rows, in the order of their tombstones, and the open registrations in the end."""
    opened, rows = ENTRIES.empty_table(), []
    for records in runs:
        settled = settle(opened, entries(batch_of(records)))
        opened = settled.open
        rows += settled.rows.to_pylist()
    return sorted(rows, key=lambda row: (row["wait_partition"], row["wait_offset"])), opened


def test_a_row_has_what_registration_and_tombstone_say() -> None:
    ((row,), opened) = history([registration(IDS[1], 5)], [tombstone(IDS[1], 7, outcome=Outcome.RETRIED)])
    assert opened.num_rows == 0
    assert row == {
        "wait_id": IDS[1],
        "outcome": "retried",
        "settled_at": datetime(1970, 1, 1, 0, 0, 7, tzinfo=UTC),
        "consumer_group": "payments",
        "key": b"4711",
        "topic": "orders",
        "partition": 3,
        "offset": 41,
        "record_time": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
        "delivery": 1,
        "idempotency_key": IDS[0],
        "instance": "host-1",
        "registered_at": datetime(1970, 1, 1, 0, 0, 5, tzinfo=UTC),
        "wait_partition": 0,
        "wait_offset": 7,
    }


def deliveries(*runs: list[Row]) -> list[tuple[int, int | None]]:
    """Return the offset of each tombstone, and the delivery of the registration that it settled."""
    return [(row["wait_offset"], row["delivery"]) for row in history(*runs)[0]]


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([registration(IDS[0], 1), registration(IDS[0], 2, delivery=2), tombstone(IDS[0], 3)], [(3, 2)]),
        ([tombstone(IDS[0], 3)], [(3, None)]),
        ([registration(IDS[0], 1), tombstone(IDS[0], 2), tombstone(IDS[0], 3)], [(2, 1), (3, None)]),
        ([tombstone(IDS[0], 1), registration(IDS[0], 2)], [(1, None)]),
        ([registration(IDS[0], 1, 1), tombstone(IDS[0], 2, 0)], [(2, None)]),
        ([registration(IDS[0], 1), tombstone(IDS[1], 2)], [(2, None)]),
        ([], []),
    ],
    ids=["renewed", "compacted away", "twice", "registered after it", "other partition", "other ID", "nothing"],
)
def test_a_tombstone_settles_what_is_before_it(records: list[Row], expected: list[tuple[int, int | None]]) -> None:
    assert deliveries(records) == expected
    assert deliveries(*([record] for record in records)) == expected


def test_other_records_and_odd_headers_are_no_obstacle() -> None:
    odd: Headers = (("WAIT_DELIVERY", b"many"), ("ORIGINAL_OFFSET", b"9" * 30), ("WAIT_GROUP", b"\xff"))
    records = [
        Row(b"no wait ID", b"{}", 0, 1),
        Row(None, None, 0, 2),
        Row(b"\xff" * 36, None, 0, 3),
        Row(IDS[0].encode(), b"{}", 0, 4, -(2**62), odd),
        Row(IDS[0].encode(), None, 0, 5, 2**62, None),
        Row(IDS[1].encode(), b"{}", 0, 6, 6, (("PARTITION", b"7"),)),
        Row(IDS[1].encode(), None, 0, 7, 7, (("WAIT_OUTCOME", b"done"),)),
    ]
    rows, opened = history(records)
    assert opened.num_rows == 0
    assert [(row["wait_offset"], row["outcome"], row["partition"]) for row in rows] == [(5, None, None), (7, "done", 7)]
    assert {rows[0][name] for name in ("delivery", "offset", "consumer_group", "settled_at", "registered_at")} == {None}


@given(
    st.lists(st.tuples(st.sampled_from(IDS), st.integers(0, 1), st.booleans()), max_size=12),
    st.sets(st.integers(1, 11)),
    st.randoms(use_true_random=False),
)
def test_rows_do_not_depend_on_where_a_run_ends(log: list[tuple[str, int, bool]], cuts: set[int], random: Any) -> None:
    records = [
        (tombstone if ends else registration)(wait_id, offset, partition)
        for offset, (wait_id, partition, ends) in enumerate(log)
    ]
    at_once, open_at_once = history(records)
    bounds = [0, *sorted(cut for cut in cuts if cut < len(records)), len(records)]
    runs = [records[begin:end] for begin, end in pairwise(bounds)]
    for run in runs:
        random.shuffle(run)
    in_runs, open_in_runs = history(*runs)
    assert in_runs == at_once
    by_place = [("wait_partition", "ascending"), ("wait_offset", "ascending")]
    assert open_in_runs.sort_by(by_place).equals(open_at_once.sort_by(by_place))
    assert len(at_once) == sum(ends for _, _, ends in log)


def test_a_second_commit_adds_a_part_and_replaces_what_is_open(tmp_path: Path) -> None:
    directory = HistoryDirectory(tmp_path)
    batch = entries(batch_of([registration(wait_id, number) for number, wait_id in enumerate(IDS)]))
    opened = settle(ENTRIES.empty_table(), batch).open
    for part in (1, 2):
        settled = settle(opened, entries(batch_of([tombstone(IDS[part], 5 + part)])))
        opened = settled.open
        with directory.locked():
            assert directory.commit(Progress(part, "waits", "id-1", {0: 6 + part}, opened), settled.rows) == 1
    assert HistoryDirectory(tmp_path).progress() == Progress(2, "waits", "id-1", {0: 8}, opened)
    files = sorted(tmp_path.rglob("*.parquet"))
    assert [pq.read_table(file, partitioning=None)["wait_offset"].to_pylist() for file in files] == [[6], [7]]
    assert len({file.parent for file in files}) == 1


def committed(path: Path, parts: int) -> list[Path]:
    """Write a history with this number of parts, and return their files in order."""
    directory = HistoryDirectory(path)
    directory.begin("waits", "id-1", {0: 0})
    for part in range(1, parts + 1):
        rows = settle(ENTRIES.empty_table(), entries(batch_of([tombstone(IDS[0], part)]))).rows
        directory.commit(Progress(part, "waits", "id-1", {0: part + 1}, ENTRIES.empty_table()), rows)
    return sorted(path.rglob("part-*.parquet"))


def test_what_a_run_wrote_before_its_commit_is_removed(tmp_path: Path) -> None:
    first, second = committed(tmp_path, 2)
    half = second.with_name(f".{second.name}")
    half.write_bytes(b"PAR1")
    for part in (1, 0):
        committed(tmp_path / f"{part}", part)
        (tmp_path / f"{part}/_state/position.arrow").replace(tmp_path / "_state/position.arrow")
        progress = HistoryDirectory(tmp_path).progress()
        assert progress is not None
        assert progress.part == part
        assert [file.exists() for file in (first, second, half)] == [part == 1, False, False]


@pytest.mark.parametrize("state", ["none", "earlier layout", "old backup"])
def test_parts_that_the_position_does_not_know_are_kept(state: str, tmp_path: Path) -> None:
    parts = committed(tmp_path, 3)
    position = tmp_path / "_state/position.arrow"
    if state == "old backup":
        committed(tmp_path / "backup", 1)
        (tmp_path / "backup/_state/position.arrow").replace(position)
    else:
        position.unlink()
    if state == "earlier layout":
        position.with_suffix(".json").write_text('{"format": 1, "part": 3}')
    with pytest.raises(ConfigurationError, match=r"part-0000000\d\.parquet .*another folder"):
        HistoryDirectory(tmp_path).progress()
    assert all(part.exists() for part in parts)


def test_a_full_disk_is_no_wrong_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    directory = HistoryDirectory(tmp_path)
    monkeypatch.setattr(os, "fsync", full)
    with directory.locked(), pytest.raises(TransientError, match="No space left on device"):
        directory.commit(Progress(1, "waits", "id-1", {0: 6}, ENTRIES.empty_table()), ROWS.empty_table())


@pytest.mark.parametrize("begin", ["g" * 210, "ä" * 60], ids=["ascii", "escaped"])
def test_long_groups_with_one_beginning_have_a_folder_each(begin: str, tmp_path: Path) -> None:
    batch = batch_of([tombstone(wait_id, offset) for offset, wait_id in enumerate(IDS[:2])])
    rows, column = settle(ENTRIES.empty_table(), entries(batch)).rows, ROWS.get_field_index("consumer_group")
    groups = [f"{begin}-1", f"{begin}-2"]
    rows = rows.set_column(column, ROWS.field(column), pa.array(groups))
    directory = HistoryDirectory(tmp_path)
    with directory.locked():
        directory.commit(Progress(1, "waits", "id-1", {0: 2}, ENTRIES.empty_table()), rows)
    files = tmp_path.rglob("*.parquet")
    found = [pq.read_table(file, partitioning=None)["consumer_group"].to_pylist() for file in files]
    assert sorted(found) == [[group] for group in groups]
