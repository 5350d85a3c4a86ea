"""Rows as lines: nothing is lost or harms a terminal; how old the tables are, in words."""

from __future__ import annotations

import json
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.diagnosis import Severity
from wait_registry.display import lines_of, safe, value_text
from wait_registry.settings.tree import Settings
from waitreg.connect.lag import ConnectLag, lag_line, lag_of
from waitreg.doctor.connect_tables import SWEEPS, position_line, resolved_line
from waitreg.result_rows import render_rows
from waitreg.tables_age import KEPT_S, CachedLine, TablesAge, in_words, sentence

_CELLS = st.one_of(st.none(), st.integers(), st.text(st.characters(exclude_categories=["Cs"]), max_size=200))


def test_a_table_is_aligned_and_counted() -> None:
    rows = [("orders", 3), ("refunds, all", None)]
    assert list(render_rows(["topic", "n"], rows)) == [
        "topic         n",
        "------------  -",
        "orders        3",
        "refunds, all",
        "(2 rows)",
    ]


def test_times_bytes_and_json_are_readable() -> None:
    row = (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), timedelta(minutes=90), b"caf\xc3\xa9 \xff", {"a": [1]}, None)
    assert list(render_rows(["a", "b", "c", "d", "e"], [row]))[2].split("  ") == [
        "2026-01-02T03:04:05.000+00:00",
        "01:30:00",
        "\\x636166c3a920ff",
        '{"a": [1]}',
    ]


def test_json_keeps_numbers_and_structures_what_they_are() -> None:
    row = (timedelta(minutes=90), Decimal("1.5"), b"\x00k", {"a": [None, "é"]}, None, True)
    (line,) = render_rows(["a", "b", "c", "d", "e", "f"], [row], as_json=True)
    assert list(json.loads(line).values()) == [5400.0, 1.5, "\\x006b", {"a": [None, "é"]}, None, True]


@pytest.mark.parametrize(
    ("span", "shown"),
    [
        (timedelta(0), "00:00:00"),
        (timedelta(seconds=-5), "-00:00:05"),
        (timedelta(milliseconds=-200), "00:00:00"),
        (timedelta(days=1, hours=2), "1 day 02:00:00"),
        (timedelta(days=-3, seconds=-1), "-3 days 00:00:01"),
    ],
)
def test_an_interval_is_days_and_a_clock_with_one_sign(span: timedelta, shown: str) -> None:
    assert list(render_rows(["a"], [(span,)]))[2] == shown


def test_wide_characters_take_two_columns() -> None:
    assert list(render_rows(["a", "n"], [("注文", 1)]))[1:3] == ["----  -", "注文  1"]


def test_a_table_wider_than_120_columns_has_one_field_per_line_uncut() -> None:
    rows = [("orders", "Traceback\n  in pay\n" + "x" * 200, None), ("refunds", "y", 3)]
    assert list(render_rows(["topic", "error", "n"], rows)) == [
        "-- row 1",
        "topic  orders",
        "error  Traceback",
        "         in pay",
        "       " + "x" * 200,
        "n",
        "-- row 2",
        "topic  refunds",
        "error  y",
        "n      3",
        "(2 rows)",
    ]


@given(st.lists(st.tuples(_CELLS, _CELLS)))
def test_a_row_is_one_line_in_json(rows: list[tuple[object, object]]) -> None:
    lines = list(render_rows(["a", "b"], rows, as_json=True))
    assert [tuple(json.loads(line).values()) for line in lines] == rows


@given(st.lists(st.tuples(_CELLS, _CELLS)))
def test_a_table_is_one_line_per_row_or_one_field_per_line(rows: list[tuple[object, object]]) -> None:
    lines = list(render_rows(["a", "b"], rows))
    assert lines[-1].startswith(f"({len(rows)} row")
    assert len(lines) == len(rows) + 3 or sum(line.startswith("-- row ") for line in lines) >= len(rows)


@given(st.text())
def test_no_character_reaches_the_terminal_that_moves_or_hides(text: str) -> None:
    assert all(unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in safe(text))


@given(st.binary(max_size=200))
def test_lines_are_safe_whatever_the_bytes_are(data: bytes) -> None:
    for line in lines_of(data):
        assert safe(line, "\t") == line


def test_text_is_text_and_other_bytes_are_digits() -> None:
    assert list(lines_of("a\nü\x1b[2J\u202e".encode())) == ["a", "ü\\x1b[2J\\u202e"]
    assert list(lines_of(b"\xff\x00A")) == ["00000000  ff 00 41" + " " * 41 + "..A"]
    assert list(lines_of(b"abcdef", most=4)) == ["abcd", "(2 more bytes)"]
    assert list(lines_of(b"")) == [""]


@given(*2 * [st.none() | st.binary() | st.sampled_from([b"null", b'"null"', b"\\x00", b"\0"])])
def test_two_header_values_never_look_the_same(one: bytes | None, other: bytes | None) -> None:
    assert (value_text(one) == value_text(other)) is (one == other)


NOW = datetime(2026, 11, 21, 9, 45, 55, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"), [(-3, "0 s"), (59.4, "59 s"), (145, "2 min 25 s"), (7260, "2 h 1 min"), (90_000, "1 d 1 h")]
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
def test_rows_that_the_log_has_resolved_long_ago_are_a_warning(superseded: list[int], standing: Severity) -> None:
    line = resolved_line(superseded)
    assert line.severity is standing
    assert standing is Severity.OK or "waitreg rebuild" in line.fix


def test_an_answer_is_kept_for_some_seconds() -> None:
    now_s, asked = [0.0], []

    def ask(settings: Settings) -> str:
        asked.append(settings)
        return f"answer {len(asked)}"

    line = CachedLine(ask, lambda: now_s[0])
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

    line = CachedLine(ask)
    with ThreadPoolExecutor(8) as pool:
        lines = [pool.submit(line, Settings()) for _ in range(8)]
        answer.set()
        assert {one.result(30) for one in lines} == {"the answer"}
    assert len(asked) == 1
