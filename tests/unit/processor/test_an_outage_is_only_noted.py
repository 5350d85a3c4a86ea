"""A broker that can't be reached is waited for; what waiting can't mend ends the process (P8)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from processor.broker_link import BrokerLink
from processor.fault import Fault
from wait_registry.errors import ConfigurationError


@pytest.mark.parametrize("code", [KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT])
def test_an_unreachable_broker_is_no_fault_and_all_of_them_mean_not_ready(code: int) -> None:
    fault = Fault()
    link = BrokerLink(fault)
    link.on_error(KafkaError(code))
    assert fault.error is None
    assert link.up is (code != KafkaError._ALL_BROKERS_DOWN)
    link.answered()
    assert link.up


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED])
def test_refused_credentials_end_the_process(code: int) -> None:
    fault = Fault()
    BrokerLink(fault).on_error(KafkaError(code))
    assert isinstance(fault.error, ConfigurationError)
