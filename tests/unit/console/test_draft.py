"""What the page of an edit gives back is what it was given, and it shows as text only what a browser leaves alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.acting.draft import part, read_draft, value_part
from wait_registry.display import MOST_BYTES


def read(value: bytes, /, **head: Any) -> Any:
    given_ = {"key": ["null", ""], "headers": [], "value": "bytes", "allow": [], **head}
    return read_draft(json.dumps(given_).encode() + b"\n" + value)


@given(st.none() | st.binary(max_size=30) | st.text(max_size=9).map(lambda text: text.encode("utf-8", "ignore")))
def test_each_part_comes_back_as_it_was(data: bytes | None) -> None:
    shown = part(data)
    text = shown.hex if shown.kind == "hex" else shown.text
    draft = read(data or b"", key=[shown.kind, text], headers=[["a", shown.kind, text]])
    assert (draft.content.key, draft.content.headers) == (data, (("a", data),))
    digits = read(part(data).hex.encode(), value="null" if data is None else "hex")
    assert digits.content.value == data


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (None, "null"),
        (b"", "text"),
        (b"a\tb", "text"),
        ("ä\ufeff".encode(), "text"),
        (b"a\nb", "hex"),
        (b"a\rb", "hex"),
        (b"a\0b", "hex"),
        (b"\x1b[2J", "hex"),
        (b"\xff", "hex"),
    ],
)
def test_a_line_is_text_only_if_a_field_keeps_it(data: bytes | None, kind: str) -> None:
    assert part(data).kind == kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\n\na\nb\n", "text"),
        (b"a\r\nb", "hex"),
        (b"a" * MOST_BYTES, "text"),
        (b"a" * (MOST_BYTES + 1), "file"),
        (bytes(MOST_BYTES + 1), "file"),
    ],
)
def test_a_value_is_text_only_if_a_text_area_keeps_it(data: bytes, kind: str) -> None:
    assert value_part(data).kind == kind


def test_a_byte_order_mark_is_named() -> None:
    assert value_part(b"\xef\xbb\xbf{}").note == "It begins with a byte order mark."
    assert value_part(b"{}").note == ""
