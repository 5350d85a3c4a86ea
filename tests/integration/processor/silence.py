"""A processor whose requests of one kind get no answer, as long as a test wants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.processor.running import RunningProcessor
from tests.integration.processor.scenario import ProcessorScenario
from tests.support.tcp_proxy import Fate, KafkaProxy


class Silence:
    """Requests of one kind are lost while it lasts; ``requests`` counts all requests, by API key."""

    def __init__(self, api: int, lasts: bool = True) -> None:
        self.lasts = lasts
        self.requests: Counter[int] = Counter()
        self._api = api

    @contextmanager
    def running(self, at: ProcessorScenario, once: bool = False) -> Iterator[RunningProcessor]:
        """Start a processor whose requests these are."""
        with KafkaProxy(at.topics.bootstrap, self._decide) as proxy:
            try:
                yield at.start(proxy.bootstrap_servers, once)
            finally:  # it leaves the group through the proxy
                self.lasts = False

    def _decide(self, api: int) -> Fate:
        self.requests[api] += 1
        return Fate.LOSE_REQUEST if self.lasts and api == self._api else Fate.PASS
