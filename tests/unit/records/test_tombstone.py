"""A tombstone says how a registration ended."""

from __future__ import annotations

from hypothesis import given

from tests.unit.records.strategies import HEADERS
from wait_registry.records.headers import Headers
from wait_registry.records.tombstone import Outcome, decode_outcome, tombstone_headers


def test_the_processors_outcomes_are_all_but_the_two_of_the_sweeper() -> None:
    assert {outcome for outcome in Outcome if not outcome.by_processor} == {Outcome.EXPIRED, Outcome.REDELIVERED}


def test_the_headers_of_an_outcome_are_made_once() -> None:
    for outcome in Outcome:
        assert tombstone_headers(outcome) is tombstone_headers(outcome)
        assert decode_outcome(tombstone_headers(outcome)) is outcome


@given(HEADERS)
def test_headers_without_an_outcome_say_nothing(headers: Headers) -> None:
    assert decode_outcome(headers) is None


def test_a_tombstone_without_headers_says_nothing() -> None:
    assert decode_outcome(None) is None
