"""What the page of an edit shows and sends: parts of a record as text or hexadecimal digits, and the value as bytes.

A form's field would change line ends, so the page sends a line of JSON, and after it the bytes of the value.
"""

from __future__ import annotations

import unicodedata
from typing import Final, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from wait_registry.dead_letters.difference import Content
from wait_registry.display import MOST_BYTES, is_text
from wait_registry.errors import ConfigurationError

_Kind: TypeAlias = Literal["text", "hex", "null"]
_BOM: Final = "\ufeff"


class Part(NamedTuple):
    """A key, a header's value or a value, as it is shown: text, hexadecimal digits (both, if possible) or null.

    ``note`` says what of the text can't be seen.
    """

    kind: str
    text: str = ""
    hex: str = ""
    note: str = ""


class Edited(NamedTuple):
    """What a person wants to send: the record, the categories that they allow, and the reason and the token, if any."""

    content: Content
    allowed: tuple[str, ...]
    reason: str
    token: str


class _Head(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key: tuple[_Kind, str]
    headers: list[tuple[str, _Kind, str]]
    value: Literal["bytes", "hex", "null"]
    allow: list[str]
    reason: str = ""
    token: str = ""


def value_part(data: bytes | None) -> Part:
    """Return how a value is shown; a large one as a file alone."""
    return Part("file") if data is not None and len(data) > MOST_BYTES else part(data, "\t\n")


def part(data: bytes | None, kept: str = "\t") -> Part:
    """Return how a part of a record is shown, so that it comes back as it is if it isn't changed.

    Args:
        data: the bytes, or null.
        kept: the control characters that the field gives back as they are.
    """
    if data is None:
        return Part("null")
    digits, text = data.hex(" "), data.decode() if is_text(data) else "\0"
    if any(unicodedata.category(one) == "Cc" and one not in kept for one in text):
        return Part("hex", "", digits)
    return Part("text", text, digits, "It begins with a byte order mark." if text.startswith(_BOM) else "")


def read_edit(body: bytes) -> Edited:
    """Read what the page of an edit sends.

    Raises:
        ConfigurationError: it is something else, or digits aren't hexadecimal.
    """
    line, _, value = body.partition(b"\n")
    try:
        head = _Head.model_validate_json(line)
    except ValidationError as error:
        raise ConfigurationError("this isn't what the page of an edit sends: open it again") from error
    headers = tuple((name, _data(f"header {name!r}", kind, text.encode())) for name, kind, text in head.headers)
    content = Content(_data("key", head.key[0], head.key[1].encode()), headers, _data("value", head.value, value))
    return Edited(content, tuple(sorted(set(head.allow))), head.reason.strip(), head.token)


def _data(name: str, kind: str, data: bytes) -> bytes | None:
    if kind == "null":
        return None
    if kind != "hex":
        return data
    try:
        return bytes.fromhex(data.decode("ascii"))
    except ValueError as error:
        raise ConfigurationError(f"{name}: expected hexadecimal digits, two for each byte") from error
