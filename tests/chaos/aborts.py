"""Somebody else's transactions in an input topic that come to nothing: who reads committed records sees none of it."""

from __future__ import annotations

from contextlib import suppress

from confluent_kafka import KafkaException, Producer

from tests.chaos.companion import Companion
from tests.chaos.stage import Place
from wait_registry.kafka.clients import producer_config
from wait_registry.settings.kafka import KafkaSettings

RECORDS = 5
BETWEEN_S = 1.0
REQUEST_S = 5.0
# An open transaction holds back whoever reads committed records; a broker that crashed forgets none.
TRANSACTION_MS = 5_000


class Aborts(Companion):
    """Produces a few records each second and aborts them; a context manager. A broker that is away is waited for."""

    def __init__(self, place: Place, bootstrap: str) -> None:
        self._topic = place.input
        self._kafka = KafkaSettings(bootstrap_servers=bootstrap)
        super().__init__("aborts", BETWEEN_S, self._abort_while_possible)

    def _abort_while_possible(self) -> None:
        # Another producer of this id ends what this one leaves open.
        with suppress(KafkaException):
            self._abort_again_and_again()

    def _abort_again_and_again(self) -> None:
        own = {"transactional.id": f"{self._topic}.aborts", "transaction.timeout.ms": TRANSACTION_MS}
        producer = Producer({**producer_config(self._kafka, **own), "log_level": 0})
        producer.init_transactions(REQUEST_S)
        while not self.ended.wait(BETWEEN_S):
            producer.begin_transaction()
            for number in range(RECORDS):
                producer.produce(self._topic, f"aborted {number}".encode(), b"key %d" % number)
            producer.flush(REQUEST_S)
            producer.abort_transaction(REQUEST_S)
