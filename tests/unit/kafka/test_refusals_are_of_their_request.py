"""Only a refusal that belongs to a request explains why it got no answer; an older one doesn't."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.requests import answer
from wait_registry.settings.kafka import KafkaSettings

REFUSED = KafkaError(KafkaError._AUTHENTICATION, "wrong password")


class Unanswered(Future[str]):
    """A request that times out, while something may happen."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._meanwhile = meanwhile

    def result(self, timeout: float | None = None) -> str:
        self._meanwhile()
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))


def client() -> Admin:
    return admin(KafkaSettings(bootstrap_servers="127.0.0.1:1"))


def accepted() -> Admin:
    """Return a client that has had an answer."""
    asked: Future[str] = Future()
    asked.set_result("an answer")
    at = client()
    assert answer(at, asked, "asking") == "an answer"
    return at


def test_a_refusal_of_days_ago_leaves_an_outage_an_outage() -> None:
    at = accepted()
    at.on_error(REFUSED)
    with pytest.raises(TransientError):
        answer(at, Unanswered(), "asking")


def test_a_refusal_during_the_request_is_its_reason() -> None:
    at = accepted()
    with pytest.raises(ConfigurationError, match="wrong password"):
        answer(at, Unanswered(lambda: at.on_error(REFUSED)), "asking")


def test_a_client_that_was_refused_before_its_first_request_is_still_refused() -> None:
    at = client()
    at.on_error(REFUSED)
    with pytest.raises(ConfigurationError, match="wrong password"):
        answer(at, Unanswered(), "asking")
