"""How old a view is, in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wait_registry.cli.view_age import ViewAge, ago, view_line

NOW = datetime(2026, 11, 21, 9, 45, 55, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s ago"), (59.4, "59 s ago"), (145, "2 min 25 s ago"), (7260, "2 h 1 min ago"), (90_000, "1 d 1 h ago")],
)
def test_an_age_has_its_two_largest_units(seconds: float, words: str) -> None:
    assert ago(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(("silent_s", "old"), [(120, False), (121, True)])
def test_only_a_sink_that_has_not_written_for_over_two_minutes_is_warned_of(silent_s: int, old: bool) -> None:
    as_of, heard_from = NOW - timedelta(seconds=145), NOW - timedelta(seconds=silent_s)
    line = view_line(ViewAge("waitreg.wait", as_of, heard_from, NOW))
    assert line.startswith("view of waitreg.wait as of 2026-11-21 09:43:30 UTC, 2 min 25 s ago")
    assert ("no sink is writing" in line) is old


def test_a_log_that_is_read_for_the_first_time_is_no_view_as_of_now() -> None:
    line = view_line(ViewAge("waitreg.wait", NOW, NOW, NOW, 1234))
    assert line.startswith("view of waitreg.wait in the making: 1234 offsets to go")


def test_a_view_that_nobody_has_written_is_none() -> None:
    assert view_line(None).startswith("no view yet")
