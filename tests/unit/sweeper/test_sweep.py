"""A sweep's counts, its words and its skips."""

from __future__ import annotations

from datetime import UTC, datetime

import orjson
import psycopg
import pytest

from sweeper.outgoing import Obstacle, SetAside
from sweeper.partition_result import PartitionResult, Skip
from sweeper.partition_sweep import skip_of
from sweeper.position import PositionTooOld
from sweeper.sweep import SweepResult, swept
from sweeper.tail import TailTooLong
from sweeper.tail_reader import OpenTransaction
from wait_registry.errors import ConfigurationError, FencedError, PermanentError, TransientError

AT = datetime(2026, 11, 21, 2, 20, tzinfo=UTC)


def test_partitions_are_added_up() -> None:
    sweep = swept("wait", AT, 1.5, 12, [PartitionResult(0, 3, 1, 2, 1), PartitionResult(1, 4, 0, 1)])
    assert (sweep.exported, sweep.redelivered, sweep.superseded, sweep.unseen) == (7, 1, 3, 1)
    assert sweep.result is SweepResult.DONE
    assert sweep.in_words() == "sweep done in 1.500 s: due 12, exported 7, redelivered 1, superseded 3, unseen 1"


def test_what_is_left_out_makes_a_sweep_partial() -> None:
    skipped = swept("wait", AT, 0, 1, [PartitionResult(4, skip=Skip.OPEN_TRANSACTION, reason="open at 7")])
    assert skipped.result is SweepResult.PARTIAL
    assert skipped.as_fields()["skipped"] == [{"partition": 4, "skip": "open_transaction", "reason": "open at 7"}]
    aside = SetAside("id", "orders", 0, 1, Obstacle.TOO_LARGE, "too large")
    assert swept("wait", AT, 0, 1, [PartitionResult(4, set_aside=1, named=(aside,))]).result is SweepResult.PARTIAL


def test_its_fields_are_plain_json() -> None:
    fields = swept("wait", AT, 0.0123, 0, []).ended(SweepResult.SKIPPED, "another sweep").as_fields()
    read = orjson.loads(orjson.dumps(fields))
    assert (read["started_at"], read["result"], read["reason"]) == (
        "2026-11-21T02:20:00.000Z", "skipped", "another sweep")  # fmt: skip


@pytest.mark.parametrize(
    ("error", "skip"),
    [
        (FencedError("another"), Skip.FENCED),
        (OpenTransaction("open"), Skip.OPEN_TRANSACTION),
        (TailTooLong("long"), Skip.TAIL_TOO_LONG),
        (PositionTooOld("old"), Skip.POSITION_TOO_OLD),
        (TransientError("away"), Skip.UNAVAILABLE),
        (psycopg.OperationalError("away"), Skip.UNAVAILABLE),
        (psycopg.errors.ReadOnlySqlTransaction("standby"), Skip.UNAVAILABLE),
        (ConfigurationError("no right"), Skip.REFUSED),
        (PermanentError("refused"), Skip.FAILED),
        (ZeroDivisionError(), Skip.FAILED),
    ],
)
def test_every_error_of_a_partition_has_its_skip(error: Exception, skip: Skip) -> None:
    assert skip_of(error, 3) is skip


def test_a_sweep_that_had_to_leave_every_partition_is_in_trouble() -> None:
    fenced = PartitionResult(0, skip=Skip.FENCED, reason="another")
    old = PartitionResult(1, skip=Skip.POSITION_TOO_OLD, reason="too old")
    assert swept("wait", AT, 0, 2, [fenced, old]).trouble() == "too old"
    assert swept("wait", AT, 0, 2, [old, PartitionResult(2, exported=1)]).trouble() is None
    assert swept("wait", AT, 0, 1, [fenced]).trouble() is None
    assert swept("wait", AT, 0, 0, []).trouble() is None
    assert swept("wait", AT, 0, 0, []).ended(SweepResult.FAILED, "away").trouble() == "away"
