"""Bytes for people: text if it is text, else hexadecimal digits; no character that moves a cursor or hides another."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import Final

# A page or a terminal shows no more of a value.
MOST_BYTES: Final = 64 * 1024
# What one line of a log has of the text of others.
MOST_LOGGED: Final = 500
_HEX_WIDTH: Final = 16
_KEPT: Final = "\n\t"


def is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8 without NUL."""
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def safe(text: str, kept: str = "") -> str:
    """Escape control characters, and characters that change the direction of text or take no width.

    Args:
        text: anything.
        kept: characters to leave alone, such as line ends.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character in kept or unicodedata.category(character) not in _HIDDEN else _escaped(character)
        for character in text
    )


def one_line(text: str, most: int = MOST_LOGGED) -> str:
    """Return text on one line, its white space as single spaces and all that is hidden escaped, and cut to a length."""
    line = safe(" ".join(text.split()))
    return line if len(line) <= most else f"{line[:most]}..."


def value_text(value: bytes | None) -> str:
    """Return one line that shows a header's value, and no other one: null, text, or ``\\x`` and hexadecimal digits.

    Text that could be taken for one of the others is in quotation marks.
    """
    if value is None:
        return "null"
    if not is_text(value):
        return f"\\x{value.hex()}"
    text = value.decode()
    return safe(json.dumps(text, ensure_ascii=False) if text == "null" or text.startswith(('"', "\\x")) else text)


def bytes_text(data: bytes) -> str:
    """Return bytes as conditions take them: text, else ``\\x`` and hexadecimal digits, also of text that begins so."""
    text = data.decode() if is_text(data) else ""
    return text if is_text(data) and not text.startswith("\\x") else f"\\x{data.hex()}"


def lines_of(data: bytes, most: int = MOST_BYTES, as_text: bool = True) -> Iterator[str]:
    """Yield the lines that show bytes: of text its own, else offset, hexadecimal digits and ASCII.

    Args:
        data: anything.
        most: how many bytes are shown; a last line says how many more there are.
        as_text: whether text is shown as such.
    """
    if as_text and is_text(data):
        # A character is not cut in two.
        text = data[:most].decode(errors="ignore")
        yield from safe(text, _KEPT).split("\n")
    else:
        for start in range(0, min(len(data), most), _HEX_WIDTH):
            part = data[start : start + _HEX_WIDTH]
            ascii_text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
            yield f"{start:08x}  {part.hex(' '):<{3 * _HEX_WIDTH}} {ascii_text}"
    if len(data) > most:
        yield f"({len(data) - most} more bytes)"


_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
