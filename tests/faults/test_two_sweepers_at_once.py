"""P4: two sweeper processes at work at the same time export each row once between them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.faults.sweeper_without_spark import start_sweeper_without_spark
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario
from tests.support.waiting import wait_until

ROWS, ROUNDS = 40, 3


@pytest.mark.fault("F81")
def test_each_row_is_exported_once_and_both_have_swept(scenario: ScenarioFactory, tmp_path: Path) -> None:
    at = scenario({"sweeper.interval_s": 0.1, "sweeper.chunk_rows": 5})
    at.show()  # a sink's first word, without which nothing is exported
    due: list[Registered] = []
    sweepers = [start_sweeper_without_spark(at.settings, tmp_path / name) for name in ("one", "two")]
    swept = "select count(distinct instance) from sweep where result = 'done'"
    try:
        wait_until(lambda: at.database.rows(at.settings, swept) == [(2,)], what="a sweep of each")
        for _ in range(ROUNDS):
            due += at.register([at.wait_record(len(due) + number) for number in range(ROWS)])
            at.show()
            wait_until(partial(are_exported, at, len(due)), what="the exports")
        assert [sweeper.process.poll() for sweeper in sweepers] == [None, None]
    finally:
        for sweeper in sweepers:
            sweeper.kill()
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in due)


def are_exported(at: Scenario, rows: int) -> bool:
    return len(at.dead_letters()) >= rows
