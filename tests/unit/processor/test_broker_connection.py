"""A broker that can't be reached is waited for; an error that waiting doesn't fix ends the process (P8)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from processor.intake.broker_connection import BrokerConnection
from processor.service.ending import Fault
from wait_registry.errors import ConfigurationError


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
    said = (
        "SASL PLAIN mechanism handshake failed: Local: Broker transport failure: broker's supported mechanisms: (n/a)"
    )
    BrokerConnection(fault).on_error(KafkaError(KafkaError._AUTHENTICATION, said))
    assert fault.error is None
