"""Original headers survive any way; a dead letter or tombstone says why, within bounds, in words for every store."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records.strategies import HEADERS, LINEAGES, ODD_TEXTS
from wait_registry.errors import DataError
from wait_registry.records.dead_letter import (
    MAX_CLASS_CHARACTERS,
    MAX_MESSAGE_CHARACTERS,
    MAX_STACKTRACE_CHARACTERS,
    Failure,
    Reason,
    dead_letter_headers,
    decode_dead_letter,
)
from wait_registry.records.headers import (
    MAX_JSON_BYTES,
    Headers,
    decode_headers_json,
    encode_headers_json,
    readable_headers_json,
    require_sendable_names,
)
from wait_registry.records.lineage import Lineage
from wait_registry.records.tombstone import Outcome, decode_outcome, tombstone_headers

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.just("base64"), inner),
    max_leaves=8,
)
UNICODE = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@pytest.mark.guarantee("P5.1")
@given(HEADERS)
def test_headers_come_out_as_they_went_in(headers: Headers) -> None:
    assert decode_headers_json(encode_headers_json(headers)) == headers


@given(HEADERS)
def test_the_json_is_what_postgres_can_hold(headers: Headers) -> None:
    def strings(value: object) -> list[str]:
        if isinstance(value, dict):
            return [text for pair in value.items() for part in pair for text in strings(part)]
        if isinstance(value, list):
            return [text for item in value for text in strings(item)]
        return [value] if isinstance(value, str) else []

    document = json.loads(encode_headers_json(headers))
    assert not [text for text in strings(document) if "\0" in text or text != text.encode("utf-8", "replace").decode()]


@given(st.dictionaries(UNICODE, UNICODE))
def test_the_older_dialects_object_of_strings_is_read_in_order(older: dict[str, str]) -> None:
    expected = tuple((name, value.encode()) for name, value in older.items())
    assert decode_headers_json(json.dumps(older).encode()) == expected


@given(JSON.map(lambda document: json.dumps(document).encode()) | st.binary(max_size=30))
def test_anything_else_is_refused_without_another_error(data: bytes) -> None:
    try:
        headers = decode_headers_json(data)
    except DataError as error:
        assert len(str(error)) < 300
    else:
        assert decode_headers_json(encode_headers_json(headers)) == headers


def test_json_beyond_16_mib_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(DataError, match=f"at most {MAX_JSON_BYTES}"):
        decode_headers_json(b" " * (MAX_JSON_BYTES + 1))


def test_a_refusal_never_shows_the_headers() -> None:
    for data in (
        b'[["name-secret", 5, "value-secret"]]',
        b'{"name-secret": ["value-secret"]}',
        b'["secret"',
        b'"secret"',
    ):
        with pytest.raises(DataError) as refused:
            decode_headers_json(data)
        assert "secret" not in str(refused.value)
        assert refused.value.__cause__ is None


@given(HEADERS)
def test_only_names_that_the_client_would_change_or_die_of_are_unsendable(headers: Headers) -> None:
    sendable = all(name == name.encode("utf-8", "replace").decode() and "\0" not in name for name, _ in headers)
    if sendable:
        require_sendable_names(headers)
    else:
        with pytest.raises(DataError, match="can't send"):
            require_sendable_names(headers)


def test_headers_that_no_reader_would_take_are_not_written() -> None:
    headers: Headers = (("name", bytes(MAX_JSON_BYTES)),)
    with pytest.raises(DataError, match=f"at most {MAX_JSON_BYTES}"):
        readable_headers_json(headers)
    assert readable_headers_json((("name", b"value"),)) == encode_headers_json((("name", b"value"),))


def test_what_was_written_in_a_table_may_be_longer_than_what_was_read() -> None:
    text = encode_headers_json((("name", bytes(MAX_JSON_BYTES)),))
    assert len(text) > MAX_JSON_BYTES
    assert decode_headers_json(text, 2 * MAX_JSON_BYTES) == (("name", bytes(MAX_JSON_BYTES)),)


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


def test_an_error_that_can_not_be_described_is_named() -> None:
    class Odd(Exception):
        __cause__ = property(lambda self: int("no"))  # type: ignore[assignment]

    failure = Failure.from_exception(Reason.FAILED, Odd(), 0)
    assert str(failure.error_class).endswith("Odd")
    assert failure.error_message == "it can't be described: ValueError"


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
