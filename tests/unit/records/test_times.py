"""Times are read as java.time prints them, rounded down to ms, and written so that they read back the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.unit.records.strategies import TIMES_MS
from wait_registry.errors import DataError
from wait_registry.records.times import MAX_TIME_MS, MIN_TIME_MS, format_utc_ms, parse_utc_ms

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OFFSETS = st.integers(-18 * 3600, 18 * 3600).map(lambda seconds: timezone(timedelta(seconds=seconds)))
# A margin keeps the instant within the years 1 to 9999 whatever the offset.
MOMENTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29))


def read_or_none(text: str) -> int | None:
    try:
        return parse_utc_ms(text)
    except DataError:
        return None


@given(TIMES_MS)
@example(MIN_TIME_MS)
@example(MAX_TIME_MS)
def test_a_time_reads_back_as_it_was_written(time_ms: int) -> None:
    assert parse_utc_ms(format_utc_ms(time_ms)) == time_ms


@given(MOMENTS, OFFSETS)
def test_a_time_with_an_offset_is_the_same_instant_rounded_down_to_ms(moment: datetime, zone: timezone) -> None:
    aware = moment.replace(tzinfo=zone)
    assert parse_utc_ms(aware.isoformat()) == (aware - EPOCH) // timedelta(milliseconds=1)


@given(
    TIMES_MS, st.lists(st.tuples(st.integers(0, 22), st.sampled_from("0123456789-+:.TZ[]\u00b2\u0663 ")), max_size=2)
)
def test_a_further_zero_never_decides_whether_a_time_can_be_read(time_ms: int, damage: list[tuple[int, str]]) -> None:
    # With exactly three digits a time is read in another way than with four.
    characters = list(format_utc_ms(time_ms))
    for index, character in damage:
        characters[index] = character
    text = "".join(characters)
    assume(text[19] == ".")
    assert read_or_none(text) == read_or_none(text.removesuffix("Z") + "0Z")


# The borders of the calendar, and of what other clients can write.
@example("294277-01-01T00:00:00Z")
@example("infinity")
@example("0001-01-01T00:00:00+00:01")
@example("9999-12-31T23:59:59-00:01")
@given(st.text() | st.text("0123456789-+:.TZ[]", max_size=40))
def test_any_text_is_a_time_or_refused(text: str) -> None:
    try:
        time_ms = parse_utc_ms(text)
    except DataError as error:
        assert len(str(error)) < 500
    else:
        assert MIN_TIME_MS <= time_ms <= MAX_TIME_MS
        assert parse_utc_ms(format_utc_ms(time_ms)) == time_ms


@pytest.mark.parametrize("time_ms", [MIN_TIME_MS - 1, MAX_TIME_MS + 1, 2**63 - 1, -(2**63)])
def test_a_time_outside_of_the_years_1_to_9999_is_not_written(time_ms: int) -> None:
    with pytest.raises(DataError, match="years 1 to 9999"):
        format_utc_ms(time_ms)
