"""Records that trickle in are gathered: when a poll rests before it takes them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.flow.gathering import ENOUGH, Gathering
from processor.intake.group_config import GATHERING, TUNING, tuning
from wait_registry.settings.tree import Settings

SPAN_S = 0.005
# Until the mean is near what the records show.
LEARNED = 40


def rests_of(
    gathering: Gathering, every_s: float, polls: int, records: int = 1, asked: int = 1000, waited: bool = True
) -> list[float]:
    """Return the rest after each of some polls that bring records at a distance."""
    rests, now_s = [], 0.0
    for _ in range(polls):
        now_s += every_s
        gathering.came(records, asked, waited, now_s)
        rests.append(gathering.rest_s(now_s))
    return rests


@pytest.mark.parametrize(
    ("every_s", "records", "asked", "waited", "rest_s"),
    [
        pytest.param(0.001, 1, 1000, True, SPAN_S, id="a record each millisecond"),
        pytest.param(0.006, 6, 1000, True, SPAN_S, id="as many, gathered already"),
        pytest.param(0.01, 1, 1000, True, 0, id="slower than one per span"),
        pytest.param(60, 1, 1000, True, 0, id="records that come alone"),
        pytest.param(0.001, ENOUGH, 1000, True, 0, id="enough for an iteration"),
        pytest.param(0.001, 3, 3, True, 0, id="all that was asked for, so more may be there"),
        pytest.param(0.006, 6, 1000, False, 0, id="there before they were asked for"),
    ],
)
def test_a_poll_rests_only_if_records_trickle(
    every_s: float, records: int, asked: int, waited: bool, rest_s: float
) -> None:
    rests = rests_of(Gathering(SPAN_S), every_s, LEARNED, records, asked, waited)
    assert rests[0] == 0, "a first record is taken at once"
    assert rests[-1] == pytest.approx(rest_s)


def test_a_rest_ends_a_span_after_the_last_records() -> None:
    gathering = Gathering(SPAN_S)
    rests_of(gathering, 0.001, LEARNED)
    last_s = LEARNED * 0.001
    assert gathering.rest_s(last_s + 0.002) == pytest.approx(0.003)
    assert gathering.rest_s(last_s + SPAN_S) == pytest.approx(0)
    assert gathering.rest_s(last_s + 60) == 0


def test_a_record_after_a_quiet_time_is_taken_at_once_and_few_more_gather() -> None:
    gathering = Gathering(SPAN_S)
    rests_of(gathering, 0.001, LEARNED)
    gathering.came(1, 1000, True, 3600)
    gathering.came(1, 1000, True, 3660)
    after = [
        (gathering.came(1, 1000, True, 3660 + n * 0.001), gathering.rest_s(3660 + n * 0.001))[1] for n in range(1, 12)
    ]
    assert after[0] == 0
    assert after[-1] == pytest.approx(SPAN_S)


def test_a_poll_without_records_changes_nothing() -> None:
    gathering = Gathering(SPAN_S)
    rests_of(gathering, 0.001, LEARNED)
    before = gathering.rest_s(0.041)
    gathering.came(0, 1000, True, 0.0405)
    assert gathering.rest_s(0.041) == before > 0


@given(
    st.floats(0, 0.02),
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 2000), st.integers(1, 2000), st.booleans())),
)
def test_no_rest_is_longer_than_the_span(span_s: float, polls: list[tuple[float, int, int, bool]]) -> None:
    gathering, now_s = Gathering(span_s), 0.0
    for after_s, records, asked, waited in polls:
        now_s += after_s
        gathering.came(records, asked, waited, now_s)
        rest_s = gathering.rest_s(now_s)
        assert 0 <= rest_s <= math.nextafter(now_s + span_s, math.inf) - now_s
        assert span_s or not rest_s


@pytest.mark.parametrize(("gather_ms", "ours"), [(5, TUNING | GATHERING), (0, TUNING)])
def test_the_client_gathers_unless_that_is_off(gather_ms: float, ours: dict[str, object]) -> None:
    assert tuning(Settings.model_validate({"processor": {"gather_ms": gather_ms}})) == ours
