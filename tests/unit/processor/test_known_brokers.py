"""A broker that can't be reached is waited for; a client that knows no broker any more is reported (P8)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer

from processor.intake.broker_connection import FORGOTTEN_AFTER_S, BrokerConnection
from processor.service.ending import Fault
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError, TransientError


class Watched:
    """What the statistics of one client lead to, at times of the test's choice."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.fault = Fault()
        connection = BrokerConnection(self.fault, monotonic=lambda: self.now_s)
        self.report = connection.stats_config("producer")["stats_cb"]

    def after(self, seconds: float, statistics: str) -> BaseException | None:
        """Report these statistics after some seconds, and return the error that ends the process."""
        self.now_s += seconds
        self.report(statistics)
        return self.fault.error


def real_statistics() -> str:
    """Return the statistics of a client whose bootstrap server doesn't exist."""
    reported: list[str] = []
    client = Producer(
        {"bootstrap.servers": "127.0.0.1:1", "statistics.interval.ms": 10, "stats_cb": reported.append, "log_level": 0}
    )
    wait_until(
        lambda: client.poll(0.01) and reported and '"configured"' in reported[-1],
        30,
        "statistics with its bootstrap server",
    )
    return reported[-1]


ALONE = real_statistics()
# As of a consumer that has lost all brokers except the logical one of its group's coordinator.
NOBODY = ALONE.replace('"source":"configured"', '"source":"logical"')
LEARNED = ALONE.replace('"source":"configured"', '"source":"learned"')


@pytest.mark.guarantee("P8.4")
def test_a_client_without_brokers_is_reported_with_the_fix() -> None:
    assert NOBODY != ALONE
    watched = Watched()
    assert watched.after(0, NOBODY) is None
    assert watched.after(FORGOTTEN_AFTER_S - 1, NOBODY) is None
    error = watched.after(1, NOBODY)
    assert isinstance(error, TransientError)
    assert "the producer's Kafka client has known no broker for 30 s" in str(error)
    assert "Start the process again" in str(error)


def test_who_knows_one_is_not_however_long_it_is_away() -> None:
    for statistics in (ALONE, LEARNED):
        watched = Watched()
        for _ in range(100):
            assert watched.after(FORGOTTEN_AFTER_S, statistics) is None


def test_moments_without_do_not_add_up() -> None:
    watched = Watched()
    for _ in range(10):
        assert watched.after(FORGOTTEN_AFTER_S - 1, NOBODY) is None
        assert watched.after(1, ALONE) is None


@pytest.mark.guarantee("P8.24")
@pytest.mark.parametrize("code", [KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT])
def test_an_unreachable_broker_is_no_fault_and_all_of_them_mean_not_ready(code: int) -> None:
    fault = Fault()
    connection = BrokerConnection(fault)
    connection.on_error(KafkaError(code))
    assert fault.error is None
    assert connection.up is (code != KafkaError._ALL_BROKERS_DOWN)
    connection.answered()
    assert connection.up


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED])
def test_refused_credentials_end_the_process(code: int) -> None:
    fault = Fault()
    BrokerConnection(fault).on_error(KafkaError(code))
    assert isinstance(fault.error, ConfigurationError)


@pytest.mark.guarantee("P8.7")
def test_a_connection_that_breaks_in_the_handshake_is_no_fault() -> None:
    fault = Fault()
    said = "SASL PLAIN mechanism handshake failed: Local: Broker transport failure: supported mechanisms: (n/a)"
    BrokerConnection(fault).on_error(KafkaError(KafkaError._AUTHENTICATION, said))
    assert fault.error is None
