"""Rows as lines: nothing is lost in JSON, nothing breaks the table or harms a terminal."""

from __future__ import annotations

import json
import unicodedata
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.cli.result_rows import render_rows
from wait_registry.display import lines_of, safe, value_text

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
