"""What a service refuses before it starts Spark, which takes ten seconds and half a gigabyte."""

from __future__ import annotations

import logging
from typing import Literal

import psycopg

from wait_registry.errors import TransientError
from wait_registry.kafka.topics import check_topics, refuse_unfit
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.postgres.said import said_by
from wait_registry.postgres.schema import require_schema
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)


def refuse_early(settings: Settings, service: Literal["sink", "sweeper"], connections: OpenConnections) -> None:
    """Look at schema and topics; an outage of either server is only logged, whoever asks next waits it out.

    Raises:
        ConfigurationError: Postgres or Kafka refuses us, or schema or topics aren't as they must be.
    """
    try:
        with connections.open(settings.postgres, f"waitreg {service} start") as connection:
            require_schema(connection)
    except (psycopg.Error, TransientError) as error:
        log.warning("the schema can't be looked at yet: %s", said_by(error))
    try:
        refuse_unfit(check_topics(settings, service))
    except TransientError as error:
        log.warning("the topics can't be looked at yet: %s", error)
