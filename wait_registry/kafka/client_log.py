"""Log lines of the Kafka clients; during an outage librdkafka repeats a line many times per second."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from confluent_kafka import KafkaError

from wait_registry.clock import Clock, SystemClock
from wait_registry.kafka.errors import is_access_problem

REPEAT_INTERVAL_S = 30.0
MAX_REMEMBERED = 1_000

_NUMBERS = re.compile(r"\d+")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Seen:
    last_s: float
    suppressed: int = 0


class RepeatFilter(logging.Filter):
    """Lets a message pass at most once in an interval, then with the number of its repetitions.

    Messages that differ in numbers only (durations, ports) count as the same. Other kinds of errors pass.
    """

    def __init__(self, interval_s: float = REPEAT_INTERVAL_S, clock: Clock | None = None) -> None:
        super().__init__()
        self._interval_s = interval_s
        self._clock = clock or SystemClock()
        self.seen: dict[str, _Seen] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        now_s = self._clock.monotonic()
        key = _NUMBERS.sub("#", text)
        seen = self.seen.get(key)
        if seen is not None and now_s - seen.last_s < self._interval_s:
            seen.suppressed += 1
            return False
        if seen is not None and seen.suppressed:
            record.msg, record.args = "%s (and %d times more since)", (text, seen.suppressed)
        if len(self.seen) >= MAX_REMEMBERED:
            self.seen.clear()
        self.seen[key] = _Seen(now_s)
        return True


def client_logger() -> logging.Logger:
    """Return the logger for a client's ``logger``; it never floods, and is silent if logging isn't configured."""
    logger = logging.getLogger("librdkafka")
    if not logger.filters:
        logger.addFilter(_is_wanted)
        logger.addFilter(_is_no_event)
        logger.addFilter(RepeatFilter())
    return logger


def log_client_error(error: KafkaError) -> None:
    """Log an event of a client's ``error_cb``; librdkafka recovers from it unless it is fatal."""
    level = logging.ERROR if error.fatal() or is_access_problem(error) else logging.WARNING
    log.log(level, "Kafka client: %s (%s)", error.str(), error.name())


def _is_wanted(record: logging.LogRecord) -> bool:
    # Without handlers Python prints the line on standard error, between the lines of a command that reports the error.
    return logging.getLogger().hasHandlers()


def _is_no_event(record: logging.LogRecord) -> bool:
    # librdkafka reports what it logs as FAIL to error_cb as well, with a code.
    return not record.getMessage().startswith("FAIL [")


log.addFilter(_is_wanted)
log.addFilter(RepeatFilter())
