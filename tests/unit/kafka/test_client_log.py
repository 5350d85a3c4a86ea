"""An outage is logged once per interval, not twenty times per second."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaError

from wait_registry.kafka.client_log import RepeatFilter, client_logger, log_client_error


class ManualClock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now_ms(self) -> int:
        return int(self.now_s * 1000)

    def monotonic(self) -> float:
        return self.now_s


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("librdkafka", logging.ERROR, __file__, 1, text, None, None)


def test_a_repeated_message_passes_once_per_interval_with_a_count() -> None:
    clock = ManualClock()
    repeats = RepeatFilter(30, clock)
    assert repeats.filter(record("refused (after 1ms)"))
    assert not any(repeats.filter(record(f"refused (after {n}ms)")) for n in range(5))
    clock.now_s = 30
    again = record("refused (after 9ms)")
    assert repeats.filter(again)
    assert again.getMessage() == "refused (after 9ms) (and 5 times more since)"


def test_another_message_passes_at_once() -> None:
    repeats = RepeatFilter(30, ManualClock())
    assert repeats.filter(record("refused"))
    assert repeats.filter(record("timed out"))


def test_messages_are_not_remembered_without_limit() -> None:
    repeats = RepeatFilter(30, ManualClock())
    for number in range(5_000):
        repeats.filter(record("x" * number))
    assert len(repeats.seen) <= 1_000


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
