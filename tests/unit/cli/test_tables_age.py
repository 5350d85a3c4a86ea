"""How old the tables are, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wait_registry.cli.tables_age import TablesAge, ago, sentence

NOW = datetime(2026, 11, 21, 9, 45, 55, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s ago"), (59.4, "59 s ago"), (145, "2 min 25 s ago"), (7260, "2 h 1 min ago"), (90_000, "1 d 1 h ago")],
)
def test_an_age_has_its_two_largest_units(seconds: float, words: str) -> None:
    assert ago(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(("silent_s", "old"), [(120, False), (121, True)])
def test_only_a_sink_that_has_not_written_for_over_two_minutes_is_warned_of(silent_s: int, old: bool) -> None:
    as_of, written_at = NOW - timedelta(seconds=145), NOW - timedelta(seconds=silent_s)
    line = sentence(TablesAge("waitreg.wait", as_of, written_at, NOW))
    assert line.startswith("tables of waitreg.wait as of 2026-11-21 09:43:30 UTC, 2 min 25 s ago")
    assert ("no sink is writing" in line) is old


def test_tables_of_a_topic_that_is_read_for_the_first_time_are_incomplete() -> None:
    line = sentence(TablesAge("waitreg.wait", NOW, NOW, NOW, 1234))
    assert line.startswith("tables of waitreg.wait incomplete: ") and "1234 more offsets" in line
