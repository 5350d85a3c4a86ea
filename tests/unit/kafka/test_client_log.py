"""What Kafka clients log, once and at the right level."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaError

from wait_registry.kafka.client_log import client_logger, log_client_error


def test_what_comes_as_an_event_too_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    client_logger().error("FAIL [rdkafka#1] refused")
    client_logger().error("something else altogether")
    assert [line.getMessage() for line in caplog.records] == ["something else altogether"]


def test_an_access_problem_is_an_error_and_an_outage_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    log_client_error(KafkaError(KafkaError._AUTHENTICATION, "wrong password, this test"))
    log_client_error(KafkaError(KafkaError._TRANSPORT, "connection lost, this test"))
    assert [line.levelname for line in caplog.records] == ["ERROR", "WARNING"]


def test_clients_are_silent_without_a_logging_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[logging.LogRecord] = []
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging, "lastResort", handler := logging.NullHandler())
    monkeypatch.setattr(handler, "handle", heard.append)
    client_logger().error("refused, this test too")
    log_client_error(KafkaError(KafkaError._TRANSPORT, "connection lost, this test too"))
    assert heard == []
    logging.getLogger("another").error("not a client's")
    assert len(heard) == 1
