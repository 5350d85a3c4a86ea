"""Two records differ in what is listed, and in nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.difference import Content, difference

BYTES = st.none() | st.binary(max_size=20)
CONTENTS = st.builds(Content, BYTES, st.lists(st.tuples(st.text(max_size=3), BYTES), max_size=3).map(tuple), BYTES)
SAME = Content(b"k", (("a", b"1"),), b'{"id": 1, "lines": [{"sku": "x", "price": 9.10}]}')


@given(CONTENTS, CONTENTS)
def test_there_is_a_difference_exactly_if_one_byte_differs(left: Content, right: Content) -> None:
    assert bool(list(difference(left, right))) == (left != right)


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({"value": b'{"id": 1, "lines": [{"sku": "y", "price": 9.10}]}'}, ['$.lines[0].sku: "x" -> "y"']),
        ({"value": b'{"id": 1, "lines": []}'}, ['$.lines[0]: {"sku": "x", "price": 9.10} -> none']),
        ({"value": b'{"id": true, "lines": [{"sku": "x", "price": 9.10}]}'}, ["$.id: 1 -> true"]),
        ({"value": b'{"id":1,"lines":[{"sku":"x","price":9.10}]}'}, ["value: the same JSON, written in another way"]),
        ({"headers": (("a", b"1"), ("a", None))}, ["header 2: none, a: null"]),
        ({"headers": (("a", b""),)}, ['header 1: a = "1", a = ""']),
        ({"key": None}, ["key: 1 bytes, null"]),
        ({"key": b"l"}, ["key: 1 bytes, 1 bytes; the first difference is at byte 0", "  - k", "  + l"]),
    ],
)
def test_a_difference_is_named(changed: dict[str, object], lines: list[str]) -> None:
    assert list(difference(SAME, SAME._replace(**changed))) == lines  # type: ignore[arg-type]
