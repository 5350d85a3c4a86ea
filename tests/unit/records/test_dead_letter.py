"""A dead letter says why, within bounds, in words that every store can hold; a tombstone says how."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records.strategies import HEADERS, LINEAGES, ODD_TEXTS
from wait_registry.records.dead_letter import (
    MAX_CLASS_CHARACTERS,
    MAX_MESSAGE_CHARACTERS,
    MAX_STACKTRACE_CHARACTERS,
    Failure,
    Reason,
    dead_letter_headers,
    decode_dead_letter,
)
from wait_registry.records.headers import Headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.tombstone import Outcome, decode_outcome, tombstone_headers

ANY_TEXT = st.text() | ODD_TEXTS


class UnprintableError(Exception):
    """An exception whose text can't be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def raised(error: BaseException, depth: int = 0) -> BaseException:
    def descend(left: int) -> None:
        if left:
            descend(left - 1)
        raise error

    with pytest.raises(type(error)) as caught:
        descend(depth)
    return caught.value


@given(ANY_TEXT, HEADERS, LINEAGES)
def test_any_exception_can_be_described_written_and_read(text: str, headers: Headers, lineage: Lineage) -> None:
    failure = Failure.from_exception(Reason.FAILED, ValueError(text), 1)
    assert decode_dead_letter(dead_letter_headers(headers, lineage, failure)).failure == failure


def test_a_failure_names_the_exceptions_class_message_and_place() -> None:
    failure = Failure.from_exception(Reason.FAILED, raised(KeyError("customer")), 5)
    assert (failure.reason, failure.error_class, failure.error_message) == (Reason.FAILED, "KeyError", "'customer'")
    assert failure.error_stacktrace is not None
    assert "in descend" in failure.error_stacktrace
    assert failure.time_ms == 5


def test_a_class_outside_of_the_builtins_is_named_with_its_module() -> None:
    failure = Failure.from_exception(Reason.FAILED, raised(UnprintableError()), 0)
    assert failure.error_class == f"{__name__}.UnprintableError"


def test_texts_are_bounded_and_the_stack_trace_keeps_its_end() -> None:
    error = raised(ValueError("x" * 1_000_000 + "end"), depth=200)
    failure = Failure.from_exception(Reason.FAILED, error, 0)
    assert failure.error_message is not None
    assert failure.error_stacktrace is not None
    assert len(failure.error_message) == MAX_MESSAGE_CHARACTERS
    assert len(failure.error_stacktrace) == MAX_STACKTRACE_CHARACTERS
    assert failure.error_stacktrace.rstrip().endswith("end")


def test_texts_that_a_caller_made_are_bounded_when_written() -> None:
    failure = Failure(Reason.EXPIRED, "c" * 10**6, "m" * 10**6, "s" * 10**6, 0)
    lineage = Lineage("t", None, None, None, None, "019fc448-d29b-8abc-9def-0123456789ab", 0, 0, None, None, None)
    read = decode_dead_letter(dead_letter_headers((), lineage, failure)).failure
    assert read is not None
    lengths = tuple(len(text or "") for text in (read.error_class, read.error_message, read.error_stacktrace))
    assert lengths == (MAX_CLASS_CHARACTERS, MAX_MESSAGE_CHARACTERS, MAX_STACKTRACE_CHARACTERS)


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
