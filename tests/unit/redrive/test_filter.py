"""Conditions and places are read and written in one way, and no value becomes SQL."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.dead_letters.dead_letter import parse_place
from wait_registry.dead_letters.filter import FIELDS, OPERATORS, Condition, Filter, Kind, Value, matches, parse_filter
from wait_registry.dead_letters.listing import Cursor, parse_cursor
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Place
from wait_registry.records.topics import kept_topic_name

NOW = datetime(2026, 11, 27, 8, tzinfo=UTC)
VALUES: dict[Kind, st.SearchStrategy[Value]] = {
    Kind.TEXT: st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
    Kind.NUMBER: st.integers(0, 2**63 - 1),
    Kind.JOB: st.text("0123456789abcdef", min_size=1),
    Kind.BYTES: st.binary(min_size=1),
    Kind.TIME: st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
}
CONDITIONS = st.sampled_from(list(FIELDS)).flatmap(
    lambda name: st.builds(
        Condition,
        st.just(name),
        st.sampled_from(OPERATORS[FIELDS[name].kind]),
        st.sampled_from(FIELDS[name].values) if FIELDS[name].values else VALUES[FIELDS[name].kind],
    )
)


@given(st.lists(CONDITIONS, unique=True))
def test_what_is_written_is_read_again(conditions: list[Condition]) -> None:
    assert parse_filter(map(str, conditions), NOW) == Filter(tuple(conditions))


@given(st.lists(CONDITIONS, unique=True))
def test_values_are_parameters_and_never_sql(conditions: list[Condition]) -> None:
    text, parameters = Filter(tuple(conditions)).sql()
    assert text.count("%s") == len(parameters) >= len(conditions)
    # What isn't a parameter is made of the fields' own SQL and these words.
    rest = text
    for piece in sorted(
        {text for field in FIELDS.values() for text in (field.sql, field.equals)}, key=len, reverse=True
    ):
        rest = rest.replace(piece, "")
    assert re.fullmatch(r"(and|or|is distinct from|not|like|true|strpos|[ ()=<>,0%s]|is not true)*", rest), rest


TEXTS = VALUES[Kind.TEXT].map(str)


@given(st.lists(CONDITIONS, unique=True), st.lists(TEXTS, min_size=1, unique=True))
def test_a_filter_for_exact_values_has_these_alone(conditions: list[Condition], values: list[str]) -> None:
    narrowed = Filter(tuple(conditions)).only("topic", values)
    assert narrowed.exact_values("topic") == tuple(values)
    assert parse_filter(map(str, narrowed.conditions), NOW).exact_values("topic") == tuple(values)
    others = [one for one in conditions if one.field != "topic" or one.operator == "!="]
    assert narrowed.conditions[: len(others)] == tuple(others)


def test_what_leaves_other_values_possible_has_no_exact_ones() -> None:
    for texts in ([], ["topic!=a"], ["topic=a*"], ["topic=a", "topic~b"], ["topic=a", "topic=b*"], ["group=a"]):
        assert parse_filter(texts, NOW).exact_values("topic") == ()


PIECES = st.lists(st.sampled_from(["a", "b", "*", "\\*", "\\\\", "ab"]), max_size=8).map("".join)


@given(st.text("ab*\\", max_size=8), PIECES)
def test_an_asterisk_stands_for_any_characters(text: str, pattern: str) -> None:
    parts = re.findall(r"\\[*\\]|.", pattern)
    expression = "".join(".*" if part == "*" else re.escape(part[-1]) for part in parts)
    assert matches(text, pattern) == (re.fullmatch(expression, text) is not None)


@pytest.mark.parametrize("pattern", ["*" * 100_000 + "x", "*a" * 30 + "x"])
def test_many_asterisks_take_no_longer_than_few(pattern: str) -> None:
    assert not matches("a" * 1000, pattern)  # a regular expression takes for ever


def test_a_condition_on_the_state_may_mean_several() -> None:
    for text in ("state=*", "state=*ed", "state~arch", "state!=re*"):
        assert str(parse_filter([text], NOW)) == text


def test_a_relative_time_becomes_an_absolute_one() -> None:
    found = parse_filter(["since=2h", "before=30m"], NOW)
    assert str(found) == "since=2026-11-27T06:00:00Z before=2026-11-27T07:30:00Z"


def test_several_values_of_one_field_are_alternatives_and_fields_are_not() -> None:
    chosen = parse_filter(["reason=failed", "group=a", "reason=expired", "group!=b", "offset>=3", "offset<9"], NOW)
    assert chosen.sql() == (
        "(coalesce(reason, 'foreign') = %s or coalesce(reason, 'foreign') = %s) and "
        "((left(consumer_group, 250) = left(%s, 250) and (length(%s) < 250 or consumer_group = %s))) and "
        "(consumer_group is distinct from %s) and (original_offset >= %s) and (original_offset < %s)",
        ["failed", "expired", "a", "a", "a", "b", 3, 9],
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("payments", "is no condition"),
        ("grup=a", "there is no field 'grup'; did you mean group?"),
        ("=a", "there is no field ''"),
        ("group>=a", "group takes = != ~, not >="),
        ("group=", "has no value"),
        ("offset=x", "expected a whole number"),
        ("offset=1_0", "expected a whole number"),
        ("offset=9223372036854775808", "expected a whole number"),
        ("since=yesterday", "expected a time ago (10m, 2h, 7d) or an ISO 8601 time"),
        (r"key=\x1", r"expected text, or \x and an even number of hexadecimal digits"),
        ("key=\ud800", r"expected text, or \x and an even number of hexadecimal digits"),
        ("group=a\0", "expected text without NUL"),
        ("state=weg", "there is no state 'weg'; there are open, redriven, archived"),
        ("state!=Open", "there is no state 'Open'"),
        ("state~weg", "there is no state 'weg'"),
        ("state=arch", "there is no state 'arch'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_filter([text], NOW)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    "topic", ["orders.dlq", "orders.dlq@ZBdojm8pStGzkmrTFMNnnQ", f"{'x' * 249}@ZBdojm8pSt-_kmrTFMNnnQ"]
)
def test_a_place_is_read_as_it_is_shown(topic: str) -> None:
    assert parse_place(f"{topic}:3:17") == Place(topic, 3, 17)


def test_the_dead_letters_of_a_deleted_topic_have_a_place() -> None:
    topic = kept_topic_name("orders.dlq", "/Fa8EzAmTUSjswDp7j7K+Q")
    assert parse_place(f"{topic}:3:17") == Place("orders.dlq@_Fa8EzAmTUSjswDp7j7K-Q", 3, 17)


@pytest.mark.parametrize(
    "text", ["orders.dlq", "orders.dlq:0", "@ID:0:1", "orders.dlq@:0:1", "orders.dlq@a@b:0:1", "a b:0:1"]
)
def test_anything_else_is_no_place(text: str) -> None:
    with pytest.raises(ConfigurationError, match="is no place of a record"):
        parse_place(text)


def test_a_cursor_is_read_as_it_is_shown() -> None:
    cursor = Cursor(datetime(2026, 11, 29, 7, 5, 1, 123_456, tzinfo=UTC), Place("orders.dlq", 2, 41))
    assert str(cursor) == "2026-11-29T07:05:01.123456+00:00,orders.dlq:2:41"
    assert parse_cursor(str(cursor)) == cursor


@pytest.mark.parametrize(
    "text", ["", "yesterday,dlq:0:1", "2026-11-29T07:05:01+00:00", "2026-11-29T07:05:01+00:00,dlq"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        parse_cursor(text)
