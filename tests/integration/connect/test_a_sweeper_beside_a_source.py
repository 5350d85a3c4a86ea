"""A source connector beside a sweeper would export everything twice: whoever applies one is told of the other."""

from __future__ import annotations

from tests.conftest import SettingsFactory
from tests.support.database import Database
from waitreg.connect.own_sweeper import own_sweeper_at_work

SWEPT = """
insert into sweep (
    wait_topic, started_at, duration_s, due, exported, redelivered, superseded, set_aside, skipped, result, instance
) values (%s, clock_timestamp() - make_interval(secs => %s), 1, 0, 0, 0, 0, 0, '[]', 'done', 'host-1') returning 1
"""


def test_a_sweep_of_just_now_is_told_and_one_of_long_ago_or_of_another_topic_is_not(
    settings_for: SettingsFactory, database: Database
) -> None:
    settings = settings_for()
    assert own_sweeper_at_work(settings) is None, "there is no schema yet"
    database.install(settings)
    assert own_sweeper_at_work(settings) is None
    long_ago_s = 10 * settings.sweeper.interval_s + 60
    database.rows(settings, SWEPT, settings.wait.topic, long_ago_s)
    database.rows(settings, SWEPT, "another.wait", 1)
    assert own_sweeper_at_work(settings) is None
    database.rows(settings, SWEPT, settings.wait.topic, 5)
    told = own_sweeper_at_work(settings)
    assert told is not None and "stop it, or every registration that expires is exported twice" in told
