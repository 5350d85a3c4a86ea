"""P6: a sink that reads from an earlier position again, as after a reset by hand, never turns the view back."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.applying import HandFed, now_ms
from tests.integration.sink.wait_topic import ENCODER, new_id
from tests.support.database import Database
from tests.unit.sink.batches import Row
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers


def wait(wait_id: str, offset: int) -> Row:
    original = Original("orders", 0, offset, 1_700_000_000_000, "create", b"k", b"body", ())
    headers = tuple(ENCODER.headers(original, wait_id, now_ms() + 600_000))
    return Row(wait_id.encode(), b"body", 0, offset, now_ms(), headers)


def tombstone(wait_id: str, offset: int) -> Row:
    return Row(wait_id.encode(), None, 0, offset, now_ms(), tuple(tombstone_headers(Outcome.DONE)))


@pytest.mark.guarantee("P6.4")
@pytest.mark.fault("F57")
def test_neither_an_older_wait_record_nor_an_older_tombstone_touches_a_newer_registration(
    prepared: SettingsFactory, database: Database
) -> None:
    settings = prepared()
    renewed, again = new_id(), new_id()
    older = [wait(renewed, 1), wait(again, 2), tombstone(again, 3)]
    newer = [wait(renewed, 4), wait(again, 5)]
    expected = sorted([(renewed, 4), (again, 5)])
    query = "select wait_expiration_uuid, wait_offset from wait order by 1"
    with closing(HandFed(settings)) as sink:
        for row in (*older, *newer):
            sink.feed([row])
        assert database.rows(settings, query) == expected
        sink.connection.execute("update sink_progress set next_offset = 0")

    with closing(HandFed(settings)) as sink:
        for row in (*older, *newer):
            sink.feed([row])
            assert database.rows(settings, query) == expected
