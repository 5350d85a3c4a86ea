"""Whether the Kafka clients still know any broker: one that knows none never asks again, and says nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from wait_registry.errors import TransientError

STATISTICS_EVERY_MS = 10_000
# A client that begins anew with its bootstrap servers knows none for milliseconds.
FORGOTTEN_AFTER_S = 30.0

# Those of other sources (internal, logical) lead nowhere.
_SOURCES = ("learned", "configured")
# What is written so as well; it spares reading a long text.
_KNOWN = tuple(f'"source":"{source}"' for source in _SOURCES)


class KnownBrokers:
    """Looks at the statistics of one client (``stats_cb``).

    A broker that starts while no other is there answers for a moment that the cluster has no brokers. librdkafka (2.13
    to 2.16 at least) then forgets those it knew and, if it was just about to begin anew with its bootstrap servers,
    forgets that as well: https://github.com/confluentinc/librdkafka/issues/5301. Only another client helps.

    Args:
        client: its name in the error.
        give_up: is told, and again as long as it stays so, in the thread that polls the client.
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
                    "bootstrap servers, and will never ask for any (librdkafka issue 5301, after all brokers were "
                    "away): start again"
                )
            )


def _knows_any(statistics: str) -> bool:
    if any(known in statistics for known in _KNOWN):
        return True
    return any(broker["source"] in _SOURCES for broker in json.loads(statistics)["brokers"].values())
