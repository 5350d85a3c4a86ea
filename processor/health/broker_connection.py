"""Whether the Kafka clients reach the broker, and whether they still know any broker."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError

from processor.fault import Fault
from wait_registry.errors import TransientError
from wait_registry.kafka.client_log import log_client_error
from wait_registry.kafka.errors import is_access_problem, kafka_failure

log = logging.getLogger(__name__)


@dataclass
class BrokerConnection:
    """Takes the clients' error events: an outage is noted (P8), an error that no retry fixes ends the process.

    Args:
        fault: where refused credentials and fatal client errors are reported.
        give_up: called when a client knows no broker any more (`KnownBrokers`); reports to ``fault`` by default.
        monotonic: returns seconds of a clock that never steps.
    """

    fault: Fault
    give_up: Callable[[TransientError], None] | None = None
    monotonic: Callable[[], float] = time.monotonic
    up: bool = field(default=True, init=False)

    def stats_config(self, client: str) -> dict[str, Any]:
        """Return the properties with which a client reports the brokers that it knows."""
        known = KnownBrokers(client, self.give_up or self.fault.report, self.monotonic)
        return {"statistics.interval.ms": STATISTICS_EVERY_MS, "stats_cb": known.statistics}

    def on_error(self, error: KafkaError) -> None:
        """Take an event of a client's ``error_cb`` (called in whatever thread polls that client)."""
        log_client_error(error)
        if error.fatal() or is_access_problem(error):
            self.fault.report(kafka_failure(error, "a Kafka client"))
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.is_down()

    def is_down(self) -> None:
        """Note that the broker doesn't answer."""
        self.up = False

    def answered(self) -> None:
        """Note that the broker has answered."""
        if not self.up:
            log.info("the broker answers again")
        self.up = True


STATISTICS_EVERY_MS = 10_000
# A client that starts again with its bootstrap servers knows no broker for milliseconds.
FORGOTTEN_AFTER_S = 30.0

# Those of other sources (internal, logical) lead nowhere.
_SOURCES = ("learned", "configured")
# The same as text, which is faster than parsing the statistics.
_KNOWN = tuple(f'"source":"{source}"' for source in _SOURCES)


class KnownBrokers:
    """Reads the statistics of one client (``stats_cb``) and reports a client that knows no broker.

    Such a client never asks for brokers again, and logs nothing. A broker that starts alone answers for a moment that
    the cluster has no brokers. librdkafka (2.13 to 2.16 at least) then forgets the brokers that it knew and, if it was
    about to use its bootstrap servers again, forgets these as well:
    https://github.com/confluentinc/librdkafka/issues/5301. Only another client helps.

    Args:
        client: the client's name in the error.
        give_up: called in the thread that polls the client, repeatedly while the client knows no broker.
        monotonic: returns seconds of a clock that never steps.
    """

    def __init__(self, client: str, give_up: Callable[[TransientError], None], monotonic: Callable[[], float]) -> None:
        self._client = client
        self._give_up = give_up
        self._monotonic = monotonic
        self._none_since_s = math.inf

    def statistics(self, text: str) -> None:
        """Take the client's statistics, as librdkafka's STATISTICS.md describes them."""
        now_s = self._monotonic()
        if _knows_any(text):
            self._none_since_s = math.inf
        elif self._none_since_s == math.inf:
            self._none_since_s = now_s
        elif now_s - self._none_since_s >= FORGOTTEN_AFTER_S:
            self._none_since_s = now_s
            self._give_up(
                TransientError(
                    f"the {self._client}'s Kafka client has known no broker for {FORGOTTEN_AFTER_S:g} s, not even its "
                    "bootstrap servers, and never asks for any (librdkafka issue 5301, after an outage of all "
                    "brokers). Start the process again"
                )
            )


def _knows_any(statistics: str) -> bool:
    if any(known in statistics for known in _KNOWN):
        return True
    return any(broker["source"] in _SOURCES for broker in json.loads(statistics)["brokers"].values())
