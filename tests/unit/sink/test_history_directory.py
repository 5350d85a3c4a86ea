"""The folder of the history: each commit adds a part, and the next run finds what the last commit left."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from sink.history.directory import HistoryDirectory, Progress
from sink.history.settled import ENTRIES, entries, settle
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
