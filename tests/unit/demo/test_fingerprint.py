"""Two contents share a fingerprint only if they are the same bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from wait_registry.demo.manifest import fingerprint

CONTENT = st.none() | st.binary(max_size=4)
HEADERS = st.lists(
    st.tuples(st.text(alphabet=":;0123n\x00é", max_size=3), st.none() | st.binary(max_size=3)), max_size=3
)
RECORD = st.tuples(CONTENT, CONTENT, HEADERS)


@given(RECORD, RECORD)
def test_fingerprints_are_equal_exactly_when_records_are(
    one: tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]],
    other: tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]],
) -> None:
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


def test_null_and_empty_and_order_are_told_apart() -> None:
    plain = fingerprint(b"", b"", [("a", b""), ("b", None)])
    assert fingerprint(None, b"", [("a", b""), ("b", None)]) != plain
    assert fingerprint(b"", None, [("a", b""), ("b", None)]) != plain
    assert fingerprint(b"", b"", [("a", None), ("b", None)]) != plain
    assert fingerprint(b"", b"", [("b", None), ("a", b"")]) != plain


def test_no_headers_and_an_absent_list_are_the_same() -> None:
    assert fingerprint(b"k", b"v", None) == fingerprint(b"k", b"v", [])
