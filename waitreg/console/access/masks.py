"""What is hidden from everybody of the records of a topic: ``orders* value.card.number``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from wait_registry.dead_letters.difference import Content
from wait_registry.dead_letters.filter import matches
from wait_registry.dead_letters.strict_json import json_text, read_json
from wait_registry.errors import ConfigurationError

HIDDEN: Final = "(hidden)"
_HEADER: Final = "header:"
_VALUE: Final = "value."
# Headers that quote what a record contains, or what a handler said of it: ours of earlier deliveries, and those of
# other writers of dead letters, such as kafka_dlt-exception-message and __connect.errors.exception.stacktrace.
_QUOTES: Final = re.compile(r"(?i)error|exception|stack.?trace|^ORIGINAL_(KEY|HEADERS)$")


class Mask(NamedTuple):
    """A part of the records of the topics that match: ``key``, ``value``, ``value.PATH`` or ``header:NAME``."""

    topic: str
    part: str


class Masks(NamedTuple):
    """All masks."""

    masks: tuple[Mask, ...] = ()

    def of(self, topic: str | None) -> list[str]:
        """Return the parts that are hidden of a topic's records; without a topic, all that are hidden of any."""
        return [mask.part for mask in self.masks if topic is None or matches(topic, mask.topic)]


def parse_masks(texts: Iterable[str]) -> Masks:
    """Read masks.

    Raises:
        ConfigurationError: a mask can't be read.
    """
    return Masks(tuple(_parse(text) for text in texts))


def masked(content: Content, parts: Iterable[str]) -> Content:
    """Return what may be seen of a record.

    A value of which a path is hidden is hidden whole if it isn't JSON. With any part, headers that may quote it are
    hidden too.
    """
    hidden, parts = HIDDEN.encode(), list(parts)
    for part in parts:
        if part == "key" and content.key is not None:
            content = content._replace(key=hidden)
        elif part == "value" and content.value is not None:
            content = content._replace(value=hidden)
        elif part.startswith(_VALUE) and content.value is not None:
            content = content._replace(value=_without(content.value, part.removeprefix(_VALUE)))
    names = {part.removeprefix(_HEADER).lower() for part in parts if part.startswith(_HEADER)}
    headers = (
        (name, hidden if name.lower() in names or (parts and _QUOTES.search(name)) else value)
        for name, value in content.headers
    )
    return content._replace(headers=tuple(headers))


def _parse(text: str) -> Mask:
    topic, _, part = text.strip().partition(" ")
    part = part.strip()
    if part not in ("key", "value") and not (part.startswith((_VALUE, _HEADER)) and part[-1] not in ".:"):
        raise ConfigurationError(
            f"console.masks: {text!r} is no mask: expected TOPIC PART, where PART is key, value, value.PATH "
            "(e.g. value.card.number) or header:NAME"
        )
    return Mask(topic, part)


def _without(value: bytes, path: str) -> bytes:
    try:
        parsed = read_json(value)
        if isinstance(parsed, dict | list):
            # As headers are: in any case.
            left = _hide(parsed, path.casefold())
            # What has nothing to hide stays as it is.
            return value if left == parsed else json_text(left).encode()
    except (ValueError, RecursionError):
        pass
    return HIDDEN.encode()


def _hide(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {name: _hide_part(name.casefold(), part, path) for name, part in value.items()}
    if isinstance(value, list):
        return [_hide(part, path) for part in value]
    # Where there should be more of the path, there may be the same in another form.
    return value if value is None else HIDDEN


def _hide_part(name: str, part: Any, path: str) -> Any:
    """Return what may be seen of a part; a name with dots is several names of a path, as in flattened JSON."""
    if f"{name}.".startswith(f"{path}."):
        return HIDDEN
    return _hide(part, path.removeprefix(f"{name}.")) if path.startswith(f"{name}.") else part
