"""The dead letter: the original record, its lineage, and the reason."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from wait_registry.errors import ConfigurationError, DataError
from wait_registry.records import header_names
from wait_registry.records.header_reader import SystemHeaders
from wait_registry.records.headers import Headers
from wait_registry.records.lineage import Lineage, append_lineage, split_lineage
from wait_registry.records.times import format_utc_ms
from wait_registry.records.topics import MAX_TOPIC_LENGTH, is_topic_name

# Room for what a dead letter adds to the original record: the lineage block and a bounded stack trace.
DEAD_LETTER_EXTRA_BYTES: Final = 131_072
MAX_CLASS_CHARACTERS: Final = 256
MAX_MESSAGE_CHARACTERS: Final = 2_048
MAX_STACKTRACE_CHARACTERS: Final = 8_192
_MAX_FRAMES: Final = 64
_SHOWN_CHARACTERS: Final = 256


class Reason(StrEnum):
    """The reason of a dead letter."""

    FAILED = "failed"
    EXPIRED = "expired"
    BLOCKED = "blocked"
    MALFORMED = "malformed"
    UNREGISTRABLE = "unregistrable"


_REASONS: Final = tuple(reason.value for reason in Reason)


# A named tuple costs a third of a frozen dataclass; one is built per exported record.
class Failure(NamedTuple):
    """What failed, and when (ms since the epoch); the texts are bounded, without NUL or lone surrogates."""

    reason: Reason
    error_class: str | None
    error_message: str | None
    error_stacktrace: str | None
    time_ms: int

    @classmethod
    def from_exception(cls, reason: Reason, error: BaseException, time_ms: int) -> Failure:
        """Describe an exception, bounded; a stack trace keeps its end, where the error was raised."""
        try:
            # TracebackException survives exceptions whose own __str__ fails.
            described = traceback.TracebackException.from_exception(error, limit=-_MAX_FRAMES, compact=True)
            message, stacktrace = str(described), "".join(described.format())
        except Exception as unusable:  # noqa: BLE001 - its class may raise anything, a group may have any depth
            message = f"it can't be described: {type(unusable).__name__}"
            stacktrace = "".join(traceback.format_tb(error.__traceback__, -_MAX_FRAMES))
        return cls(
            reason,
            _class_name(type(error)),
            _bounded(message, MAX_MESSAGE_CHARACTERS),
            _bounded_end(stacktrace, MAX_STACKTRACE_CHARACTERS),
            time_ms,
        )


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record of a dead letter topic; lineage and failure are None if this system didn't write it."""

    headers: Headers
    lineage: Lineage | None
    failure: Failure | None


def dead_letter_headers(
    original_headers: Sequence[tuple[str, bytes | None]], lineage: Lineage, failure: Failure
) -> list[tuple[str, bytes | None]]:
    """Return the headers of a dead letter; key and value are the original's, its timestamp is the failure's time."""
    encoded = append_lineage(original_headers, lineage)
    reason, error_class, message, stacktrace, time_ms = failure
    encoded.append(_shared(header_names.DLQ_REASON, reason.value))
    if error_class is not None:
        encoded.append(_shared(header_names.DLQ_ERROR_CLASS, _bounded(error_class, MAX_CLASS_CHARACTERS)))
    if message is not None:
        encoded.append((header_names.DLQ_ERROR_MESSAGE, _bounded(message, MAX_MESSAGE_CHARACTERS).encode()))
    if stacktrace is not None:
        encoded.append((header_names.DLQ_ERROR_STACKTRACE, _bounded(stacktrace, MAX_STACKTRACE_CHARACTERS).encode()))
    encoded.append(_shared(header_names.DLQ_TIME, format_utc_ms(time_ms)))
    return encoded


# Those of a chunk share reason, class and time.
@lru_cache(maxsize=256)
def _shared(name: str, text: str) -> tuple[str, bytes]:
    return name, text.encode()


def decode_dead_letter(headers: Sequence[tuple[str, bytes | None]] | None) -> DeadLetter:
    """Read the headers of a record of a dead letter topic.

    Returns:
        Lineage and failure are None and ``headers`` holds everything when it isn't a dead letter of this system, or one
        that can't be read: nothing is ever lost.
    """
    originals, lineage, block = split_lineage(headers)
    failure = None if lineage is None else _decode_failure(block)
    if failure is None:
        return DeadLetter(tuple(headers or ()), None, None)
    return DeadLetter(originals, lineage, failure)


def dead_letter_topic(template: str, topic: str, group: str) -> str:
    """Return the dead letter topic of an input topic and a group.

    Args:
        template: the setting ``dead_letter.topic``, in which ``{topic}`` and ``{group}`` are replaced.

    Raises:
        ConfigurationError: another placeholder, or a result that isn't a topic name.
    """
    try:
        name = template.format(topic=topic, group=group)
    except (LookupError, ValueError, AttributeError):  # the settings' check names the placeholder
        name = template
    if not is_topic_name(name):
        # A record may name any text of any length as topic and group.
        seen, of_topic, of_group = (repr(text[:_SHOWN_CHARACTERS]) for text in (name, topic, group))
        raise ConfigurationError(
            f"dead_letter.topic: {template!r} becomes {seen} for topic {of_topic} and group {of_group}, expected a "
            f"topic name: at most {MAX_TOPIC_LENGTH} of the characters a-z, A-Z, 0-9, '.', '_', '-'"
        )
    return name


def _decode_failure(block: dict[str, bytes | None]) -> Failure | None:
    system = SystemHeaders(block.items())
    try:
        reason = system.choice(header_names.DLQ_REASON, _REASONS)
        time_ms = system.time_ms(header_names.DLQ_TIME)
    except DataError:
        return None
    if reason is None or time_ms is None:
        return None
    return Failure(
        Reason(reason),
        _shown(block.get(header_names.DLQ_ERROR_CLASS)),
        _shown(block.get(header_names.DLQ_ERROR_MESSAGE)),
        _shown(block.get(header_names.DLQ_ERROR_STACKTRACE)),
        time_ms,
    )


def _shown(value: bytes | None) -> str | None:
    return None if value is None else _sound(value.decode("utf-8", "replace"))


def _class_name(error_class: type[BaseException]) -> str:
    module = error_class.__module__
    name = error_class.__qualname__
    return _bounded(name if module == "builtins" else f"{module}.{name}", MAX_CLASS_CHARACTERS)


def _bounded(text: str, limit: int) -> str:
    return _sound(text if len(text) <= limit else text[: limit - 1] + "…")


def _bounded_end(text: str, limit: int) -> str:
    return _sound(text if len(text) <= limit else "…" + text[1 - limit :])


def _sound(text: str) -> str:
    """Replace each character that Postgres text or UTF-8 can't hold."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
