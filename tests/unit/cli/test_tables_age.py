"""How old the tables are, in words; how far a Connect sink is, asked of Kafka once in some seconds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest

from wait_registry.cli.checks.connect_tables import SWEEPS, position_line, resolved_line
from wait_registry.cli.connect.lag import ConnectLag, lag_line, lag_of
from wait_registry.cli.kept_line import KEPT_S, KeptLine
from wait_registry.cli.tables_age import TablesAge, in_words, sentence
from wait_registry.diagnosis import Severity
from wait_registry.settings.root import Settings

NOW = datetime(2026, 11, 21, 9, 45, 55, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s"), (59.4, "59 s"), (145, "2 min 25 s"), (7260, "2 h 1 min"), (90_000, "1 d 1 h")],
)
def test_an_age_has_its_two_largest_units(seconds: float, words: str) -> None:
    assert in_words(timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(("silent_s", "old"), [(120, False), (121, True)])
def test_only_a_sink_that_has_not_written_for_over_two_minutes_is_warned_of(silent_s: int, old: bool) -> None:
    as_of, written_at = NOW - timedelta(seconds=145), NOW - timedelta(seconds=silent_s)
    line = sentence(TablesAge("waitreg.wait", as_of, written_at, NOW))
    assert line.startswith("tables of waitreg.wait as of 2026-11-21 09:43:30 UTC, 2 min 25 s ago")
    assert ("no sink is writing" in line) is old


def test_tables_of_a_topic_that_is_read_for_the_first_time_are_incomplete() -> None:
    line = sentence(TablesAge("waitreg.wait", NOW, NOW, NOW, 1234))
    assert line.startswith("tables of waitreg.wait incomplete: ") and "1234 more offsets" in line


def lag(committed: dict[int, int], ends: dict[int, int], begun: int = 0) -> ConnectLag:
    return lag_of("connect-wait.sink", "wait", dict.fromkeys(ends, begun), committed, ends)


def test_partitions_without_a_commit_have_all_of_their_log_ahead() -> None:
    found = lag({0: 8, 1: -1001}, {0: 10, 1: 10, 2: 5}, begun=3)
    assert (found.committed, len(found.ends), found.offsets) == (1, 3, 2 + 7 + 2)
    assert "11 offsets behind the log" in lag_line(found)


def test_a_group_that_committed_nothing_makes_an_empty_answer_worthless() -> None:
    assert "an empty answer means nothing" in lag_line(lag({}, {0: 4}))


@pytest.mark.parametrize(
    ("committed", "members", "standing", "said"),
    [
        (4, 1, Severity.OK, "0 offsets to the end of wait, 1 tasks"),
        (4, 0, Severity.WARNING, "the sink doesn't run"),
        (9, 1, Severity.ERROR, "has committed 9 of wait-0, which ends at 4"),
    ],
)
def test_a_sink_without_tasks_is_a_warning_and_one_beyond_the_log_an_error(
    committed: int, members: int, standing: Severity, said: str
) -> None:
    line = position_line(lag({0: committed}, {0: 4}), members)
    assert (line.severity, said in line.message) == (standing, True), line


@pytest.mark.parametrize(
    ("superseded", "standing"),
    [([], Severity.OK), ([3, 0, 3], Severity.OK), ([3] * (SWEEPS - 1), Severity.OK), ([1] * SWEEPS, Severity.WARNING)],
)
def test_rows_that_stay_although_the_log_has_resolved_them_are_a_warning(
    superseded: list[int], standing: Severity
) -> None:
    line = resolved_line(superseded)
    assert line.severity is standing
    assert standing is Severity.OK or "waitreg rebuild" in line.fix


def test_an_answer_is_kept_for_some_seconds() -> None:
    now_s, asked = [0.0], []

    def ask(settings: Settings) -> str:
        asked.append(settings)
        return f"answer {len(asked)}"

    line = KeptLine(ask, lambda: now_s[0])
    assert [line(Settings()) for _ in range(3)] == ["answer 1"] * 3
    now_s[0] = KEPT_S - 0.1
    assert line(Settings()) == "answer 1"
    now_s[0] = KEPT_S
    assert line(Settings()) == "answer 2"


def test_of_pages_at_the_same_time_one_asks() -> None:
    asked, answer = [], Event()

    def ask(settings: Settings) -> str:
        asked.append(settings)
        assert answer.wait(30)
        return "the answer"

    line = KeptLine(ask)
    with ThreadPoolExecutor(8) as pool:
        lines = [pool.submit(line, Settings()) for _ in range(8)]
        answer.set()
        assert {one.result(30) for one in lines} == {"the answer"}
    assert len(asked) == 1
