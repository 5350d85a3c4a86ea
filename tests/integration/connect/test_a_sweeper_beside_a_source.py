"""A source connector beside a sweeper would export everything twice: whoever starts the second one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.database import Database
from wait_registry.errors import ConfigurationError
from waitreg.connect.own_sweeper import require_no_sweeper_at_work

SWEPT = """
insert into sweep (
    wait_topic, started_at, duration_s, due, exported, redelivered, superseded, set_aside, skipped, result, instance
) values (%s, clock_timestamp() - make_interval(secs => %s), 1, 0, 0, 0, 0, 0, '[]', 'done', 'host-1') returning 1
"""


def test_a_sweep_of_just_now_is_refused_and_one_of_long_ago_or_of_another_topic_is_not(
    settings_for: SettingsFactory, database: Database
) -> None:
    settings = settings_for()
    require_no_sweeper_at_work(settings)  # there is no schema yet
    database.install(settings)
    require_no_sweeper_at_work(settings)
    long_ago_s = 10 * settings.sweeper.interval_s + 60
    database.rows(settings, SWEPT, settings.wait.topic, long_ago_s)
    database.rows(settings, SWEPT, "another.wait", 1)
    require_no_sweeper_at_work(settings)
    database.rows(settings, SWEPT, settings.wait.topic, 5)
    with pytest.raises(ConfigurationError, match=r"would be exported twice. Stop it"):
        require_no_sweeper_at_work(settings)


def test_where_a_source_exports_a_sweeper_does_not_start(settings_for: SettingsFactory, tmp_path: Path) -> None:
    refused = run_waitreg(tmp_path, "sweeper", settings=settings_for({"sweeper.kind": "connect"}))
    assert refused.code == 2
    assert "sweeper.kind is connect: a Kafka Connect source exports what expires" in refused.errors + refused.output
