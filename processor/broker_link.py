"""Whether the broker can be reached, as far as the clients have noticed."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaError

from processor.fault import Fault
from wait_registry.kafka.clients import log_client_error
from wait_registry.kafka.errors import is_access_problem, kafka_failure

log = logging.getLogger(__name__)


class BrokerLink:
    """Takes the clients' error events: an outage is only noted (P8), what can't mend itself ends the process.

    Args:
        fault: where refused credentials and fatal client errors are reported.
    """

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self.up = True

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
