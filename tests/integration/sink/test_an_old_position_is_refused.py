"""P6: a view that may have missed tombstones isn't brought further: the sink says so and writes nothing."""

from __future__ import annotations

from contextlib import closing

import pytest

from sink.position import PositionExpired
from tests.conftest import SettingsFactory
from tests.integration.sink.applying import HandFed
from tests.support.database import Database
from tests.unit.sink.batches import Row

DAY_MS = 86_400_000


@pytest.mark.guarantee("P6.6")
def test_a_batch_after_a_position_older_than_half_of_delete_retention_is_not_written(
    prepared: SettingsFactory, database: Database
) -> None:
    settings = prepared()
    with closing(HandFed(settings)) as young:
        young.feed([Row(b"unreadable", b"v", 0, 1)])
        young.connection.execute("update sink_progress set position_time = now() - interval '13 hours'")
    with closing(HandFed(settings, retention_ms=DAY_MS)) as old:
        with pytest.raises(PositionExpired, match="waitreg rebuild"):
            old.feed([Row(b"unreadable", b"v", 0, 2)])
        with pytest.raises(PositionExpired):
            old.applier.refresh()
    assert database.rows(settings, 'select "offset" from quarantine') == [(1,)]
    assert database.rows(settings, "select max(next_offset) from sink_progress") == [(2,)]
