"""Original headers survive the JSON of a wait record: order, duplicates, null and empty apart, any bytes and names."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records.strategies import HEADERS
from wait_registry.errors import DataError
from wait_registry.records.headers import (
    MAX_JSON_BYTES,
    Headers,
    decode_headers_json,
    encode_headers_json,
    readable_headers_json,
    require_sendable_names,
)

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
