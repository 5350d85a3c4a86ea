"""What is shown of bytes can't harm a terminal, and loses nothing that tells two values apart."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from wait_registry.display import lines_of, safe


@given(st.text())
def test_no_character_reaches_the_terminal_that_moves_or_hides(text: str) -> None:
    assert all(unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for character in safe(text))


@given(st.binary(max_size=200))
def test_lines_are_safe_whatever_the_bytes_are(data: bytes) -> None:
    for line in lines_of(data):
        assert safe(line, "\t") == line


def test_text_is_text_and_other_bytes_are_digits() -> None:
    assert list(lines_of("a\nü\x1b[2J\u202e".encode())) == ["a", "ü\\x1b[2J\\u202e"]
    assert list(lines_of(b"\xff\x00A")) == ["00000000  ff 00 41" + " " * 41 + "..A"]
    assert list(lines_of(b"abcdef", most=4)) == ["abcd", "(2 more bytes)"]
    assert list(lines_of(b"")) == [""]
