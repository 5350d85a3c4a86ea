"""The wait id is the same for the same record and group, ordered by time, and a UUID of version 8."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records.strategies import INT31, INT63, INT64, TEXTS
from wait_registry.records.wait_id import is_wait_id, wait_id

COORDINATES = st.tuples(TEXTS, TEXTS, INT31, INT63, TEXTS)
NAME = st.text("abc-._", min_size=1, max_size=8)
DISTINCT = st.tuples(NAME, NAME, INT31, INT63, NAME)


@given(COORDINATES, INT64)
def test_the_same_record_and_group_always_have_the_same_id(
    coordinates: tuple[str, str, int, int, str], timestamp_ms: int
) -> None:
    assert wait_id(*coordinates, timestamp_ms) == wait_id(*coordinates, timestamp_ms)


@pytest.mark.guarantee("P1.7")
@given(DISTINCT, DISTINCT, INT64)
def test_any_other_coordinate_gives_another_id(
    one: tuple[str, str, int, int, str], other: tuple[str, str, int, int, str], timestamp_ms: int
) -> None:
    assert (wait_id(*one, timestamp_ms) == wait_id(*other, timestamp_ms)) == (one == other)


@given(COORDINATES, INT64)
def test_an_id_is_a_canonical_uuid_of_version_8_with_its_time(
    coordinates: tuple[str, str, int, int, str], timestamp_ms: int
) -> None:
    text = wait_id(*coordinates, timestamp_ms)
    parsed = uuid.UUID(text)
    assert str(parsed) == text
    assert is_wait_id(text)
    assert parsed.variant == uuid.RFC_4122
    assert parsed.int >> 76 & 0xF == 8
    assert parsed.int >> 80 == min(max(timestamp_ms, 0), 2**48 - 1)


@given(COORDINATES, COORDINATES, st.lists(st.integers(0, 2**48 - 1), min_size=2, max_size=2, unique=True))
def test_ids_are_ordered_by_time(
    one: tuple[str, str, int, int, str], other: tuple[str, str, int, int, str], times_ms: list[int]
) -> None:
    earlier, later = sorted(times_ms)
    assert wait_id(*one, earlier) < wait_id(*other, later)


@given(st.text(max_size=40))
def test_only_a_canonical_uuid_counts_as_an_id(text: str) -> None:
    try:
        canonical = str(uuid.UUID(text)) == text
    except ValueError:
        canonical = False
    assert is_wait_id(text) == canonical
