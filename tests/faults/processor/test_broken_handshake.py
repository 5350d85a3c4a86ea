"""A connection that breaks while the broker is asked how to log in is an outage, and no refusal (P8)."""

from __future__ import annotations

from functools import partial

import pytest
from confluent_kafka import KafkaError

from tests.integration.processor.running import Processors, RunningProcessor
from tests.integration.processor.scenario import accepts
from tests.refusals.secured_settings import SecuredSettings
from tests.support.settings import with_broker
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.waiting import wait_until

SASL_HANDSHAKE, API_VERSIONS = 17, 18


class Handshakes:
    """Decides about requests: once there is a ``fate``, connections end, and new ones come as far as the handshake."""

    def __init__(self) -> None:
        self.fate: Fate | None = None

    def __call__(self, api: int) -> Fate:
        if self.fate is None or api == API_VERSIONS:
            return Fate.PASS
        return self.fate if api == SASL_HANDSHAKE else Fate.HANG_UP


@pytest.mark.fault("F44")
def test_handshakes_cut_off_or_never_answered_are_waited_out(
    secured_settings: SecuredSettings, processors: Processors, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[KafkaError] = []
    monkeypatch.setattr("processor.intake.broker_connection.log_client_error", events.append)
    settings = secured_settings.of(
        "processor",
        "SASL_PLAINTEXT",
        {
            "processor.handler": processors.handler(accepts),
            "processor.commit_interval_s": 0.1,
            "kafka.request_timeout_s": 2,
            # A connection that isn't set up by then is given up.
            "kafka.librdkafka": {"socket.connection.setup.timeout.ms": 1000, "reconnect.backoff.max.ms": 300},
        },
    )
    topics, topic = secured_settings.topics, settings.processor.topics[0]
    handshakes = Handshakes()
    with KafkaProxy(settings.kafka.bootstrap_servers, handshakes) as proxy:
        running = processors.start(with_broker(settings, proxy.bootstrap_servers)).wait_joined()
        try:
            for done, fate in enumerate((Fate.HANG_UP, Fate.LOSE_REQUEST)):
                events.clear()
                handshakes.fate = fate
                wait_until(lambda: _at_the_handshake(events) and not running.health.ok, 60, f"an outage: {fate.value}")
                topics.produce(topic, [b"value"])
                handshakes.fate = None
                wait_until(partial(_continues, running, done + 1), 60, "its end")
        finally:  # it leaves the group through the proxy
            handshakes.fate = None
            running.stop()


def _at_the_handshake(events: list[KafkaError]) -> bool:
    return any(
        error.code() == KafkaError._AUTHENTICATION and "mechanism handshake failed: Local:" in error.str()
        for error in list(events)
    )


def _continues(running: RunningProcessor, done: int) -> bool:
    return running.done == done and running.health.ok
