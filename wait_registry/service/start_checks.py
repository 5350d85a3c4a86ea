"""What a service checks before it starts Spark, which takes ten seconds and half a gigabyte."""

from __future__ import annotations

import logging
from typing import Literal

import psycopg

from wait_registry.diagnosis import refuse_errors
from wait_registry.errors import TransientError
from wait_registry.kafka.broker_checks import require_brokers
from wait_registry.kafka.topics import check_topics
from wait_registry.postgres.errors import error_text
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.postgres.schema import require_schema
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)


def check_before_spark(settings: Settings, service: Literal["sink", "sweeper"], connections: OpenConnections) -> None:
    """Check schema, brokers and topics; an outage of either server is only logged, since later steps wait for it.

    Raises:
        ConfigurationError: Postgres or Kafka refuses us, or schema or topics are wrong.
    """
    try:
        with connections.open(settings.postgres, f"waitreg {service} start") as connection:
            require_schema(connection)
    except (psycopg.Error, TransientError) as error:
        log.warning("the schema can't be checked yet: %s", error_text(error))
    try:
        require_brokers(settings)
        refuse_errors(check_topics(settings, service))
    except TransientError as error:
        log.warning("brokers and topics can't be checked yet: %s", error)
