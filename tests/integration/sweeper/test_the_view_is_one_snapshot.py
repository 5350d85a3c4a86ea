"""The view of a partition stands still while it is exported, whatever the sink writes meanwhile (P3)."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from pydantic import SecretStr

from sweeper.snapshot import TableSnapshot
from tests.integration.sweeper.conftest import ScenarioFactory


@pytest.mark.guarantee("P3.9")
def test_rows_are_read_as_they_were_judged(scenario: ScenarioFactory) -> None:
    """The sink brings a newer registration between a row's judgment and its reading: the row judged is the one read."""
    at = scenario()
    old = at.wait_record(1)
    (registered,) = at.register([old])
    position = at.show()
    with closing(TableSnapshot(at.settings, 0)) as view:
        keys = view.next_keys(10, 1_000_000)
        at.register([at.wait_record(1, expires_in_ms=600_000, wait_id=old.wait_id, delivery=2)])
        at.show()

        ((row,), unreadable) = view.rows(keys)

    assert unreadable == []
    assert view.progress is not None
    assert view.progress.next_offset == position
    assert [(key.wait_id, key.wait_offset) for key in keys] == [(old.wait_id, registered.offset)]
    assert (row.wait_offset, row.record.delivery) == (registered.offset, 1)
    assert row.record.expires_at_ms == old.expires_at_ms


def test_the_snapshot_outlasts_the_server_s_time_limits(scenario: ScenarioFactory) -> None:
    at = scenario()
    at.register([at.wait_record(1)])
    at.show()
    url = at.settings.postgres.url.get_secret_value()
    limited = f"{url}{'&' if '?' in url else '?'}options=-c%20idle_in_transaction_session_timeout%3D60000"
    postgres = at.settings.postgres.model_copy(update={"url": SecretStr(limited)})
    view = TableSnapshot(at.settings.model_copy(update={"postgres": postgres}), 0)
    try:
        shown: Any = {"limit": "select current_setting('idle_in_transaction_session_timeout')"}
        assert view.ask(shown, "limit") == [("0",)]
    finally:
        view.close()
