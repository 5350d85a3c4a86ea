"""P3: alongside a Connect sink, whose position Postgres doesn't have, a row is exported once it has settled."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.integration.connect.outbox import DEAD_LETTER, POSITION, Connection, fill, places, register

# The sink's own statement, as far as the time of a row is concerned: an existing row is changed, not inserted.
STANDING_FOR = "update wait set created_at = now() - %s where wait_expiration_uuid = %s"
SETTLE_S = 60
EXPIRED = -600


@pytest.mark.guarantee("P3.19", "C.3")
def test_a_row_that_a_replay_shows_for_a_moment_is_not_exported(outbox: Connection) -> None:
    register(outbox, "replayed", 0, 1, EXPIRED)
    register(outbox, "standing", 0, 2, EXPIRED)
    outbox.execute(STANDING_FOR, (timedelta(seconds=SETTLE_S + 5), "standing"))
    assert fill(outbox, settle_s=SETTLE_S) == 1
    # Its tombstone, which the sink reads later.
    outbox.execute("delete from wait where wait_expiration_uuid = 'replayed'")
    assert fill(outbox, settle_s=SETTLE_S) == 0
    assert places(outbox) == [("standing", 0, 2)]


def test_a_sink_that_is_behind_by_less_exports_no_finished_row(outbox: Connection) -> None:
    # The allowance for skew is five seconds.
    register(outbox, "expired a while ago", 0, 1, -SETTLE_S - 10)
    register(outbox, "its tombstone may be on its way", 0, 2, -SETTLE_S)
    outbox.execute("update wait set created_at = now() - interval '1 hour'")
    assert fill(outbox, settle_s=SETTLE_S) == 1
    assert places(outbox) == [("expired a while ago", 0, 1)]


def test_an_unsettled_row_is_only_late(outbox: Connection) -> None:
    register(outbox, "late", 0, 1, EXPIRED)
    assert fill(outbox, settle_s=SETTLE_S) == 0
    outbox.execute(STANDING_FOR, (timedelta(seconds=SETTLE_S - 5), "late"))
    assert fill(outbox, settle_s=SETTLE_S) == 0
    outbox.execute(STANDING_FOR, (timedelta(seconds=SETTLE_S + 5), "late"))
    assert fill(outbox, settle_s=SETTLE_S) == 1


def test_with_the_position_of_our_sink_no_row_has_to_settle(outbox: Connection) -> None:
    register(outbox, "seen to its expiry", 0, 1)
    register(outbox, "of a partition without a position", 1, 1, EXPIRED)
    outbox.execute(STANDING_FOR, (timedelta(days=1), "of a partition without a position"))
    outbox.execute(POSITION, (0, timedelta()))
    assert fill(outbox, settle_s=SETTLE_S) == 1
    assert places(outbox) == [("seen to its expiry", 0, 1)]


def test_a_tombstone_needs_no_settled_row(outbox: Connection) -> None:
    register(outbox, "exported", 0, 1)
    outbox.execute(DEAD_LETTER, (0, "expired", "exported", 0, 1))
    assert fill(outbox, settle_s=SETTLE_S) == 0
    assert places(outbox, "expired_tombstone") == [("exported", 0, 1)]
