"""A transient failure is retried within the client's limit; any other is raised at once."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.requests import DEFAULT_TIMEOUT_S, persistently, timeout_of
from wait_registry.settings.kafka import KafkaSettings

CLIENT = admin(KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout_s=10))


class TurningClock:
    """A clock that advances by four seconds whenever it is read."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def now_ms(self) -> int:
        return int(self.now_s * 1000)

    def monotonic(self) -> float:
        self.now_s += 4
        return self.now_s


def test_a_request_that_fails_twice_is_answered_the_third_time() -> None:
    calls: list[int] = []

    def request() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise TransientError("an election")
        return "answer"

    assert persistently(CLIENT, request) == "answer"
    assert len(calls) == 3


def test_a_request_that_keeps_failing_ends_at_the_clients_limit() -> None:
    calls: list[int] = []

    def request() -> str:
        calls.append(1)
        raise TransientError("still an election")

    with pytest.raises(TransientError, match="still an election"):
        persistently(CLIENT, request, TurningClock())
    # The limit is read at 4 s and ends at 14 s: failures at 8 s and 12 s are repeated, the one at 16 s isn't.
    assert len(calls) == 3


def test_a_permanent_failure_is_raised_at_once() -> None:
    calls: list[int] = []

    def request() -> str:
        calls.append(1)
        raise ConfigurationError("no permission")

    with pytest.raises(ConfigurationError):
        persistently(CLIENT, request)
    assert len(calls) == 1


def test_the_limit_is_the_setting_s_or_a_default_for_plain_clients() -> None:
    assert timeout_of(CLIENT) == 10
    assert timeout_of(AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})) == DEFAULT_TIMEOUT_S
