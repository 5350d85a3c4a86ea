"""How long the sweeper keeps marks and jobs: never shorter than the operations topic."""

from __future__ import annotations

import pytest

from sweeper.housekeeping import marks_days
from wait_registry.settings.redrive import OperationsSettings
from wait_registry.settings.root import Settings
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.topics import DAY_MS


@pytest.mark.parametrize(
    ("retention_ms", "retention_days", "days"),
    [(400 * DAY_MS, 30, 401), (10 * DAY_MS + 1, 30, 30), (40 * DAY_MS + 1, 30, 41), (-1, 30, None)],
)
def test_marks_are_kept_as_long_as_the_operations_topic_keeps_them(
    retention_ms: int, retention_days: int, days: int | None
) -> None:
    settings = Settings(
        operations=OperationsSettings(retention_ms=retention_ms), sweeper=SweeperSettings(retention_days=retention_days)
    )
    assert marks_days(settings) == days
