"""P1, P8: what can't be read as a wait record is kept whole in `quarantine`, with the batch that brought it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.applying import HandFed, now_ms
from tests.integration.sink.wait_topic import ENCODER, new_id
from tests.support.database import Database
from tests.unit.sink.batches import Row
from wait_registry.records.original import Original


@pytest.mark.guarantee("P1.12")
@pytest.mark.fault("F63")
def test_an_unreadable_record_is_set_aside_whole_and_the_others_go_on(
    prepared: SettingsFactory, database: Database
) -> None:
    settings = prepared()
    original = Original("orders", 0, 7, 1_700_000_000_000, "create", b"k", b"body", ())
    headers = tuple(ENCODER.headers(original, good := new_id(), now_ms() + 60_000))
    readable = Row(good.encode(), b"body", 0, 1, headers=headers)
    no_headers = replace(readable, key=new_id().encode(), offset=2, headers=())
    no_wait_id = replace(readable, key=b"\xffkey", value=b"\x00\xff", offset=3, headers=(("h", None), ("h", b"\xff")))

    with closing(HandFed(settings)) as sink:
        sink.feed([readable, no_headers, no_wait_id])

    assert database.rows(settings, "select wait_expiration_uuid from wait") == [(good,)]
    assert database.rows(settings, 'select "offset", key, body, headers from quarantine order by "offset"') == [
        (2, no_headers.key, b"body", []),
        (3, b"\xffkey", b"\x00\xff", [["h", None], ["h", "/w=="]]),
    ]
