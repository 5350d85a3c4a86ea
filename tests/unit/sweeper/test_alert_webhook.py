"""One POST to a real receiver, which may refuse, hang, redirect or be away."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from sweeper.alerts.webhook import post
from tests.support.http_service import Answer, Call, HttpService
from wait_registry.local.ports import LOOPBACK

BODY = {"text": "7 dead letters"}
SECRET = "/services/T0/B0/a-secret"


@pytest.fixture(autouse=True)
def without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


class Receiver:
    """Answers as the test sets it."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.service = HttpService(self._answer)

    def _answer(self, _: Call) -> Answer:
        return self.answer

    @property
    def url(self) -> SecretStr:
        return SecretStr(self.service.address + SECRET)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    with made.service:
        yield made


@pytest.mark.parametrize("status", [200, 202, 204])
def test_a_receiver_takes_a_message_as_json(receiver: Receiver, status: int) -> None:
    receiver.answer = Answer(status)
    assert post(receiver.url, BODY, 10) is None
    (call,) = receiver.service.calls
    assert (call.path, call.json()) == (SECRET, BODY)
    assert call.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_a_receiver_that_refuses_has_not_taken_it(receiver: Receiver, status: int) -> None:
    receiver.answer = Answer(status)
    found = post(receiver.url, BODY, 10)
    assert found is not None and found.answered
    assert found.reason == f"127.0.0.1 answered with status {status}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_body_follows_a_redirection(receiver: Receiver, status: int) -> None:
    receiver.answer = Answer(status, location="/elsewhere")
    found = post(receiver.url, BODY, 10)
    assert found is not None and "alerts.webhook.url" in found.reason
    assert [call.path for call in receiver.service.calls] == [SECRET]


def test_a_receiver_that_hangs_is_left_after_the_limit(receiver: Receiver) -> None:
    receiver.answer = Answer(held_back=True)
    found = post(receiver.url, BODY, 0.2)
    assert found is not None and not found.answered
    assert found.reason == "127.0.0.1 didn't answer within 0.2 s"


def test_a_receiver_that_is_away_is_named_without_its_secret() -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))  # and not listening
        found = post(SecretStr(f"http://{LOOPBACK}:{taken.getsockname()[1]}{SECRET}"), BODY, 10)
    assert found is not None and not found.answered
    assert found.reason == "127.0.0.1 can't be reached (ClientConnectorError)"
