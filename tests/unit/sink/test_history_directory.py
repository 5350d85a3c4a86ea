"""The folder of the history: each commit adds a part, and the next run finds what the last commit left."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sink.history.directory import HistoryDirectory, Progress
from sink.history.settled import ENTRIES, ROWS, entries, settle
from tests.unit.sink.batches import batch_of
from tests.unit.sink.test_history import IDS, registration, tombstone


def test_a_second_commit_adds_a_part_and_replaces_what_is_open(tmp_path: Path) -> None:
    directory = HistoryDirectory(tmp_path)
    batch = entries(batch_of([registration(wait_id, number) for number, wait_id in enumerate(IDS)]))
    opened = settle(ENTRIES.empty_table(), batch).open
    for part in (1, 2):
        settled = settle(opened, entries(batch_of([tombstone(IDS[part], 5 + part)])))
        opened = settled.open
        with directory.locked():
            assert directory.commit(Progress(part, "waits", "id-1", {0: 6 + part}), settled.rows, opened) == 1

    again = HistoryDirectory(tmp_path)
    assert again.progress() == Progress(2, "waits", "id-1", {0: 8})
    assert again.opened(again.progress()) == opened
    files = sorted(tmp_path.rglob("*.parquet"))
    assert [pq.read_table(file, partitioning=None)["wait_offset"].to_pylist() for file in files] == [[6], [7]]
    assert len({file.parent for file in files}) == 1


@pytest.mark.parametrize("begin", ["g" * 210, "ä" * 60], ids=["ascii", "escaped"])
def test_long_groups_with_one_beginning_have_a_folder_each(begin: str, tmp_path: Path) -> None:
    batch = batch_of([tombstone(wait_id, offset) for offset, wait_id in enumerate(IDS[:2])])
    rows, column = settle(ENTRIES.empty_table(), entries(batch)).rows, ROWS.get_field_index("consumer_group")
    groups = [f"{begin}-1", f"{begin}-2"]
    rows = rows.set_column(column, ROWS.field(column), pa.array(groups))
    directory = HistoryDirectory(tmp_path)
    with directory.locked():
        directory.commit(Progress(1, "waits", "id-1", {0: 2}), rows, ENTRIES.empty_table())
    files = tmp_path.rglob("*.parquet")
    found = [pq.read_table(file, partitioning=None)["consumer_group"].to_pylist() for file in files]
    assert sorted(found) == [[group] for group in groups]
