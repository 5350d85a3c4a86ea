"""Rows 1, 2, 3 and 7 of the benchmark can be played: everything they measure is there, at a size that says nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.harness.row import Row
from bench.harness.smoke import smoke
from bench.rows.row_1 import ROW as ROW_1
from bench.rows.row_2 import ROW as ROW_2
from bench.rows.row_3 import ROW as ROW_3
from bench.rows.row_7 import ROW as ROW_7
from tests.support.stack import Stack
from tests.support.topics import Topics

TOPICS = ("bench.r1.slow", "bench.r2.noop", "bench.r3.memory", "bench.r3.few", "bench.r7.noop", "bench.r7.registry")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("row", [ROW_1, ROW_2, ROW_3, ROW_7], ids=lambda row: f"row {row.number}")
def test_the_row_can_be_played(row: Row, stack: Stack, topics: Topics, tmp_path: Path) -> None:
    topics.delete_at_end(*TOPICS)
    played = smoke(row, stack.bootstrap_servers, stack.postgres_url, tmp_path, say=print)
    assert played.failures == []
    assert [judgement.line.text for judgement in played.judgements if judgement.verdict == "failed"] == []
    assert any(judgement.spread is not None for judgement in played.judgements)
