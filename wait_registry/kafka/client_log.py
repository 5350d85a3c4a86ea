"""Log lines of the Kafka clients; during an outage librdkafka repeats a line many times per second."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaError

from wait_registry.kafka.errors import is_access_problem
from wait_registry.repeats import RepeatFilter

log = logging.getLogger(__name__)


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
