"""Structured logs on standard error, one JSON object per line or lines for people, without payloads."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TextIO

import orjson

from wait_registry.display import safe
from wait_registry.handler import Record
from wait_registry.settings.runtime import LogFormat, LogSettings

# The message of a library's exception may have any length, and may quote its input.
MAX_ERROR_MESSAGE_CHARS = 2_000
MAX_TRACEBACK_CHARS = 16_000

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_NOISY = ("py4j", "apscheduler", "asyncio", "aiohttp")

ContextFields = Callable[[], Mapping[str, object]]


def _no_fields() -> Mapping[str, object]:
    return {}


_context_fields: ContextFields = _no_fields


def record_fields(**named: object) -> dict[str, object]:
    """Return the log fields that name a record, as the ``extra`` of a logging call: those that aren't None."""
    return {name: value for name, value in named.items() if value is not None}


def log_fields(record: Record) -> dict[str, object]:
    """Return the log fields that name a handler's record."""
    return record_fields(
        wait_id=record.wait_id,
        idempotency_key=record.idempotency_key,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
    )


def take_fields_from(context_fields: ContextFields | None) -> None:
    """Add context fields, such as the IDs of the current trace, to every line.

    Args:
        context_fields: called for every line, in the thread and context that writes it; None to add nothing.
    """
    global _context_fields
    _context_fields = context_fields or _no_fields


def configure_logging(settings: LogSettings, service: str, stream: TextIO | None = None) -> None:
    """Send this process's log lines to standard error, replacing the earlier configuration.

    Args:
        settings: level and format.
        service: name of the service, on every line.
        stream: where to write instead of standard error.
    """
    stream = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(stream)
    for_people = settings.format is LogFormat.CONSOLE or (settings.format is LogFormat.AUTO and stream.isatty())
    handler.setFormatter(ConsoleFormatter(service) if for_people else JsonFormatter(service))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(settings.level)
    logging.captureWarnings(True)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[settings.level]))


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time (UTC, ms), level, service, logger, message, extra fields, error."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _utc_ms(record.created),
            "level": record.levelname,
            "service": self._service,
            "logger": record.name,
            "message": record.getMessage(),
        }
        for name, value in _extra_fields(record).items():
            line.setdefault(name, value)
        line.update(_error_fields(self, record))
        return orjson.dumps(_shown(line)).decode()


class ConsoleFormatter(logging.Formatter):
    """Lines for people: time, level, logger, message, then fields as name=value and the traceback."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {name}={value}" for name, value in _extra_fields(record).items())
        time = _utc_ms(record.created)
        line = f"{time} {record.levelname:<7} {self._service} {record.name}: {record.getMessage()}{fields}"
        error = _error_fields(self, record)
        # A terminal obeys the control characters that a record or a service has put into an error.
        return safe(f"{line}\n{error['traceback']}" if error else line, kept="\n\t")


def _utc_ms(created_s: float) -> str:
    return datetime.fromtimestamp(created_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _extra_fields(record: logging.LogRecord) -> dict[str, object]:
    fields = {name: _shown(value) for name, value in record.__dict__.items() if name not in _STANDARD}
    return {**_context_fields(), **fields}


def _shown(value: object) -> object:
    """Return what JSON can hold: texts are UTF-8 (names may hold lone surrogates), large integers become text."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value)} bytes>"
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) <= value < 2**64 else str(value)
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {str(_shown(str(name))): _shown(item) for name, item in value.items()}
    return str(value).encode("utf-8", "backslashreplace").decode()


def _error_fields(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, object]:
    if not record.exc_info or record.exc_info[0] is None:
        return {}
    error_class, error, _ = record.exc_info
    # The last lines of a traceback matter most, so a long one loses its beginning.
    return {
        "error_class": f"{error_class.__module__}.{error_class.__qualname__}",
        "error_message": str(error)[:MAX_ERROR_MESSAGE_CHARS],
        "traceback": formatter.formatException(record.exc_info)[-MAX_TRACEBACK_CHARS:],
    }
