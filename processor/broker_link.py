"""Whether the broker can be reached, as far as the clients have noticed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError

from processor.fault import Fault
from processor.known_brokers import STATISTICS_EVERY_MS, KnownBrokers
from wait_registry.errors import TransientError
from wait_registry.kafka.clients import log_client_error
from wait_registry.kafka.errors import is_access_problem, kafka_failure

log = logging.getLogger(__name__)


class BrokerLink:
    """Takes the clients' error events: an outage is only noted (P8), what can't mend itself ends the process.

    Args:
        fault: where refused credentials and fatal client errors are reported.
        give_up: is told of a client that knows no broker any more (`KnownBrokers`); that goes to ``fault`` by default.
        monotonic: returns seconds of a clock that never steps.
    """

    def __init__(
        self,
        fault: Fault,
        give_up: Callable[[TransientError], None] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fault = fault
        self._give_up = give_up or fault.report
        self._monotonic = monotonic
        self.up = True

    def looks_at_statistics(self, client: str) -> dict[str, Any]:
        """Return the properties with which a client of this name tells here which brokers it knows."""
        known = KnownBrokers(client, self._give_up, self._monotonic)
        return {"statistics.interval.ms": STATISTICS_EVERY_MS, "stats_cb": known.statistics}

    def on_error(self, error: KafkaError) -> None:
        """Take an event of a client's ``error_cb`` (called in whatever thread polls that client)."""
        log_client_error(error)
        if error.fatal() or is_access_problem(error):
            self._fault.report(kafka_failure(error, "a Kafka client"))
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.up = False

    def answered(self) -> None:
        """Take note that the broker has answered something."""
        if not self.up:
            log.info("the broker answers again")
        self.up = True
