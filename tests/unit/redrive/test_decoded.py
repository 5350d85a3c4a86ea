"""What is shown of a record: JSON values with line breaks as they are written, and when it was produced."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.dead_letters.dead_letter import DeadLetter
from wait_registry.dead_letters.decoded import MOST_BYTES, SHOWN_CHARACTERS, Decoded, decoded
from wait_registry.dead_letters.difference import Content
from wait_registry.records.headers import Headers
from wait_registry.records.operation import Place

ID_HEADER = ("__value_schema_id", b"\1" + bytes(16))
TEXTS = st.text() | st.sampled_from(['"', "\\", '\\"', "{", "},[", ": ", "\n"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=20,
)


@given(
    value=st.lists(VALUES) | st.dictionaries(TEXTS, VALUES),
    plain=st.booleans(),
    space=st.sampled_from(["", " ", "\n\t"]),
)
def test_only_white_space_between_values_changes(value: Any, plain: bool, space: str) -> None:
    given_text = json.dumps(value, ensure_ascii=plain, separators=(f"{space},{space}", f"{space}:{space}"))
    found = decoded(given_text.encode(errors="surrogatepass"), None)
    assert found == Decoded("JSON", json.dumps(value, ensure_ascii=plain, indent=2))


@pytest.mark.parametrize(
    "text", ['{"a": 1.10000000000000000001}', '{"a": 1, "a": 2}', '{"a": 12345678901234567890123}', r'{"a": "\u0041"}']
)
def test_numbers_names_and_escapes_stay_as_they_are_written(text: str) -> None:
    found = decoded(text.encode(), None)
    assert found is not None
    assert "".join(found.text.split()) == "".join(text.split())


def test_line_breaks_take_no_more_room_than_is_shown() -> None:
    value = b"[" * 900 + b"1," * 400_000 + b"1" + b"]" * 900
    tracemalloc.start()
    found = decoded(value, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found is not None
    assert len(found.text) < SHOWN_CHARACTERS + 100
    assert found.text.endswith("(more of it isn't shown)")
    assert peak < 32 * 1024 * 1024


OTHERS = {
    "null": None,
    "empty": b"",
    "text": b"text",
    "number": b"3",
    "string": b'"text"',
    "cut off": b'{"a": ',
    "bytes": b"\xff",
    "deep": b"[" * 100_000,
    "schema": b"\0\0\0\0\1avro",
    "large": b"[" + b" " * MOST_BYTES + b"]",
    **{encoding: '{"a":1}'.encode(encoding) for encoding in ("utf-16", "utf-16-le", "utf-32")},
    "surrogate": b'{"a":"\xed\xa0\x80"}',
    "byte order mark": b'\xef\xbb\xbf{"a":1}',
}


@pytest.mark.parametrize("value", OTHERS.values(), ids=OTHERS)
def test_other_values_are_shown_as_they_are(value: bytes | None) -> None:
    assert decoded(value, None) is None


@pytest.mark.parametrize(
    ("value", "headers", "said"),
    [
        (b"\x06o-1\x04", (ID_HEADER,), "the schema's ID is in the header __value_schema_id, which isn't supported"),
        (b"\0\0\0\0\1avro", (ID_HEADER,), "the schema's ID is in the header __value_schema_id"),
        (b'\0\0\0\0\7{"id": 1}', (), "the value begins with the ID of a schema (7), which isn't supported for JSON"),
        (b"text", (("__value_schema_id", None),), None),
    ],
)
def test_a_schema_id_where_it_is_not_supported_is_named(value: bytes, headers: Headers, said: str | None) -> None:
    found = decoded(value, None, headers)
    assert (found is None) if said is None else (found is not None and found.problem.startswith(said))


def test_json_is_shown_whatever_its_headers_are() -> None:
    assert decoded(b"[1]", None, (ID_HEADER,)) == decoded(b"[1]", None)


SHOWN = datetime(2023, 11, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    ("timestamp_ms", "unit"),
    [
        (1_700_000_000, "s"),
        (1_700_000_000_000_000, "µs"),
        (1_700_000_000_000_000_000, "ns"),
        (1_700_000_000_000, None),
        (946_684_799, None),
        (-62_135_596_800_000, None),
        (0, None),
        (-1, None),
        (None, None),
    ],
)
def test_the_unit_of_a_timestamp_that_looks_wrong_is_named(timestamp_ms: int | None, unit: str | None) -> None:
    expected = f"{timestamp_ms}, which looks like {unit} (2023-11-14 22:13:20 UTC): the producer must give ms"
    assert produced(timestamp_ms) == (SHOWN if unit is None else expected)


@pytest.mark.parametrize("timestamp_ms", [2**63 - 1, -(2**63)])
def test_a_timestamp_that_is_no_date_is_shown(timestamp_ms: int) -> None:
    assert produced(timestamp_ms) == f"{timestamp_ms}, which is no date in ms since 1970: the producer must give ms"


def produced(timestamp_ms: int | None) -> object:
    row = {"original_timestamp_ms": timestamp_ms, "original_timestamp": SHOWN}
    return DeadLetter(Place("t", 0, 0), Content(None, (), None), row).produced()
