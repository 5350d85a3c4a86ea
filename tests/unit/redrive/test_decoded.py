"""JSON values with line breaks: the same values, as they are written."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.decoded import MOST_BYTES, SHOWN_CHARACTERS, Decoded, decoded

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
    "text",
    ['{"a": 1.10000000000000000001}', '{"a": 1, "a": 2}', '{"a": 12345678901234567890123}', r'{"a": "\u0041"}'],
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


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"text",
        b"3",
        b'"text"',
        b'{"a": ',
        b"\xff",
        b"[" * 100_000,
        b"\0\0\0\0\1avro",
        b"[" + b" " * MOST_BYTES + b"]",
        '{"a":1}'.encode("utf-16"),
        '{"a":1}'.encode("utf-16-le"),
        '{"a":1}'.encode("utf-32"),
        b'{"a":"\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"a":1}',
    ],
    ids=[
        "null",
        "empty",
        "text",
        "number",
        "string",
        "cut off",
        "bytes",
        "deep",
        "schema",
        "large",
        "utf-16",
        "utf-16-le",
        "utf-32",
        "surrogate",
        "byte order mark",
    ],
)
def test_other_values_are_shown_as_they_are(value: bytes | None) -> None:
    assert decoded(value, None) is None
