"""P3: beside a Connect sink, whose place Postgres does not know, only what has stood for a while is exported."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.outbox import DEAD_LETTER, POSITION, Connection, fill, places, register
from tests.support.database import Database

# The sink's own statement, as far as the time of a row is concerned: a row that stands is changed, not made anew.
STANDING_FOR = "update wait set created_at = now() - %s where wait_expiration_uuid = %s"
SETTLE_S = 60
EXPIRED = -600


@pytest.fixture
def connection(settings_for: SettingsFactory, database: Database) -> Iterator[Connection]:
    settings = settings_for()
    database.install(settings)
    with database.connect(settings) as opened:
        yield opened


@pytest.mark.guarantee("P3.19", "C.3")
def test_what_a_replay_shows_for_a_moment_is_not_exported(connection: Connection) -> None:
    register(connection, "replayed", 0, 1, EXPIRED)
    register(connection, "standing", 0, 2, EXPIRED)
    connection.execute(STANDING_FOR, (timedelta(seconds=SETTLE_S + 5), "standing"))
    assert fill(connection, settle_s=SETTLE_S) == 1
    # Its tombstone, which the sink reads later.
    connection.execute("delete from wait where wait_expiration_uuid = 'replayed'")
    assert fill(connection, settle_s=SETTLE_S) == 0
    assert places(connection) == [("standing", 0, 2)]


def test_a_sink_that_is_behind_by_less_exports_nothing_that_was_finished_in_time(connection: Connection) -> None:
    # The allowance for skew is five seconds.
    register(connection, "expired a while ago", 0, 1, -SETTLE_S - 10)
    register(connection, "its tombstone may be on its way", 0, 2, -SETTLE_S)
    connection.execute("update wait set created_at = now() - interval '1 hour'")
    assert fill(connection, settle_s=SETTLE_S) == 1
    assert places(connection) == [("expired a while ago", 0, 1)]


def test_what_is_held_back_is_only_late(connection: Connection) -> None:
    register(connection, "late", 0, 1, EXPIRED)
    assert fill(connection, settle_s=SETTLE_S) == 0
    connection.execute(STANDING_FOR, (timedelta(seconds=SETTLE_S - 5), "late"))
    assert fill(connection, settle_s=SETTLE_S) == 0
    connection.execute(STANDING_FOR, (timedelta(seconds=SETTLE_S + 5), "late"))
    assert fill(connection, settle_s=SETTLE_S) == 1


def test_where_our_sink_runs_its_position_says_more_and_no_row_has_to_wait(connection: Connection) -> None:
    register(connection, "seen to its expiry", 0, 1)
    register(connection, "of a partition without a position", 1, 1, EXPIRED)
    connection.execute(STANDING_FOR, (timedelta(days=1), "of a partition without a position"))
    connection.execute(POSITION, (0, timedelta()))
    assert fill(connection, settle_s=SETTLE_S) == 1
    assert places(connection) == [("seen to its expiry", 0, 1)]


def test_a_tombstone_does_not_have_to_wait_for_its_row_to_settle(connection: Connection) -> None:
    register(connection, "exported", 0, 1)
    connection.execute(DEAD_LETTER, (0, "expired", "exported", 0, 1))
    assert fill(connection, settle_s=SETTLE_S) == 0
    assert places(connection, "expired_tombstone") == [("exported", 0, 1)]
