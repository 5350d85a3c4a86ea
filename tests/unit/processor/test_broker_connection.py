"""A broker that can't be reached is waited for; an error that waiting doesn't fix ends the process (P8)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, Producer

from processor.broker_connection import BrokerConnection
from processor.ending import Fault
from processor.outbox import ANY_PARTITION, Outbox
from processor.readiness import UNACKNOWLEDGED_S, not_ready_reasons
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


def test_unacknowledged_dead_letters_mean_not_ready() -> None:
    now_s = [100.0]
    # librdkafka's own broker: it answers as soon as it is asked.
    producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1})
    outbox = Outbox(producer, Fault(), lambda: now_s[0])
    assert outbox.waiting_s() == 0, "nothing has been sent"
    outbox.send(outbox.receipt("a letter", "topic", lambda message: None), ANY_PARTITION, b"key", None, [])
    now_s[0] += UNACKNOWLEDGED_S + 5
    [reason] = not_ready_reasons(False, True, 0, 50, settling_s=outbox.waiting_s())
    assert reason.startswith("tombstones or dead letters unacknowledged for 20 s")
    while outbox.unacknowledged:
        producer.poll(0.1)
    assert not_ready_reasons(False, True, 0, 50, settling_s=outbox.waiting_s()) == []


def test_unacknowledged_wait_records_mean_not_ready() -> None:
    assert not_ready_reasons(False, True, 0, 50, registering_s=UNACKNOWLEDGED_S) == []
    [reason] = not_ready_reasons(False, True, 0, 50, registering_s=UNACKNOWLEDGED_S + 1)
    assert reason.startswith("wait records unacknowledged for 16 s")
