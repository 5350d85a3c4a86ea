"""An administrative client that hears nothing for long begins anew; one that has been answered is kept (P8)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.requests import answered
from wait_registry.settings.kafka import KafkaSettings

LIMIT_S = 10.0
REFUSED = KafkaError(KafkaError._AUTHENTICATION, "wrong password")


class Asked:
    """A client, and the time as the test has it pass."""

    def __init__(self) -> None:
        self.now_s = 100.0
        settings = KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout_s=LIMIT_S)
        self.admin = Admin(settings, lambda: self.now_s)

    @property
    def inner(self) -> object:
        """The client of librdkafka's that the next request goes to."""
        return self.admin.poll.__self__

    def unanswered(self, after_s: float, code: int = KafkaError._TIMED_OUT) -> None:
        """Ask in vain for so long."""

        def request() -> None:
            self.now_s += after_s
            raise KafkaException(KafkaError(code, "no answer"))

        with pytest.raises(TransientError):
            answered(self.admin, request, "asking")

    def answered(self) -> None:
        """Ask and be answered."""
        answered(self.admin, lambda: None, "asking")


# Of librdkafka's calls one says so when nobody is there to be asked, one that the time is over.
@pytest.mark.guarantee("P8.4")
@pytest.mark.parametrize("code", ["_TRANSPORT", "_TIMED_OUT"])
def test_after_long_silence_the_next_request_has_a_client_that_knows_nothing_of_it(code: str) -> None:
    asked = Asked()
    asked.answered()
    first = asked.inner
    asked.unanswered(LIMIT_S, getattr(KafkaError, code))
    assert asked.inner is not first

    # As with any new client a refusal counts that came before its first request.
    asked.admin.on_error(REFUSED)
    with pytest.raises(ConfigurationError, match="wrong password"):
        answered(asked.admin, _times_out, "asking")


def test_failures_in_quick_succession_leave_it() -> None:
    asked = Asked()
    asked.answered()
    first = asked.inner
    for _ in range(4):
        asked.unanswered(LIMIT_S / 10)
    assert asked.inner is first
    asked.unanswered(LIMIT_S / 10)
    assert asked.inner is not first


def test_an_answer_leaves_it() -> None:
    asked = Asked()
    first = asked.inner
    for _ in range(10):
        asked.unanswered(LIMIT_S / 3)
        asked.answered()
    assert asked.inner is first


def test_where_no_other_can_be_made_it_is_kept_and_an_outage_stays_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = Asked()
    first = asked.inner

    def no_thread(properties: dict[str, object]) -> None:
        raise KafkaException(KafkaError(KafkaError._CRIT_SYS_RESOURCE, "no thread left"))

    monkeypatch.setattr("wait_registry.kafka.clients.AdminClient", no_thread)
    asked.unanswered(LIMIT_S)
    assert asked.inner is first
    assert "no thread left" in caplog.text


def _times_out() -> None:
    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer"))
