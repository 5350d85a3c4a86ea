"""A sweep's counts, its words, its fields and its trouble."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import orjson
import pytest

from sweeper.export_decision import Obstacle, Unsendable
from sweeper.result import PartitionResult, RowOutcome, Skip, Sweep, SweepResult

AT = datetime(2026, 11, 21, 2, 20, tzinfo=UTC)
OLD = PartitionResult(1, skip=Skip.POSITION_TOO_OLD, reason="too old")
FENCED = PartitionResult(0, skip=Skip.FENCED, reason="another")
EXPORTED = PartitionResult(2, Counter({RowOutcome.EXPORTED: 1}))


def swept_now(*results: PartitionResult) -> Sweep:
    return Sweep("wait", AT, 1.5, 12, results)


def test_partitions_are_added_up() -> None:
    first = Counter({RowOutcome.EXPORTED: 3, RowOutcome.REDELIVERED: 1, RowOutcome.SUPERSEDED: 2, RowOutcome.UNSEEN: 1})
    second = Counter({RowOutcome.EXPORTED: 4, RowOutcome.SUPERSEDED: 1})
    sweep = swept_now(PartitionResult(0, first), PartitionResult(1, second))
    assert sweep.counts == first + second
    assert sweep.result is SweepResult.DONE
    assert sweep.in_words() == "sweep done in 1.500 s: due 12, exported 7, redelivered 1, superseded 3, unseen 1"
    one = swept_now(PartitionResult(1, second))
    assert one.in_words().endswith("due 12, exported 4, superseded 1, ended meanwhile 7")


def test_every_outcome_is_in_the_words_and_fields() -> None:
    sweep = swept_now(PartitionResult(0, Counter(dict.fromkeys(RowOutcome, 2))))
    assert [outcome for outcome in RowOutcome if f"{outcome.value} 2" not in sweep.in_words()] == []
    assert [outcome for outcome in RowOutcome if sweep.as_fields()[outcome.value] != 2] == []


def test_skipped_partitions_and_unsendable_rows_make_a_sweep_partial() -> None:
    skipped = swept_now(PartitionResult(4, skip=Skip.OPEN_TRANSACTION, reason="open at 7"))
    assert skipped.result is SweepResult.PARTIAL
    assert skipped.as_fields()["skipped"] == [{"partition": 4, "skip": "open_transaction", "reason": "open at 7"}]
    row = Unsendable("id", "orders", 0, 1, Obstacle.TOO_LARGE, "too large")
    unsendable = swept_now(PartitionResult(4, Counter({RowOutcome.UNSENDABLE: 1}), named=(row,)))
    assert unsendable.result is SweepResult.PARTIAL


def test_its_fields_are_plain_json() -> None:
    fields = replace(swept_now(), unswept=SweepResult.SKIPPED, reason="another sweep").as_fields()
    read = orjson.loads(orjson.dumps(fields))
    assert (read["started_at"], read["result"], read["reason"]) == (
        "2026-11-21T02:20:00.000Z", "skipped", "another sweep")  # fmt: skip


@pytest.mark.parametrize(
    ("results", "trouble"),
    [([FENCED, OLD], "too old"), ([OLD, EXPORTED], None), ([FENCED], None), ([], None)],
)
def test_a_sweep_that_skipped_every_partition_is_in_trouble(results: list[PartitionResult], trouble: str) -> None:
    assert swept_now(*results).trouble() == trouble
    assert replace(swept_now(*results), unswept=SweepResult.FAILED, reason="away").trouble() == "away"
