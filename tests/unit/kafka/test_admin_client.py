"""P8: an administrative client is replaced when it is silent, and remembers refusals; what it finds in a group."""

from __future__ import annotations

import copy
import gc
import re
import weakref

import pytest
from confluent_kafka import KafkaError, KafkaException

from wait_registry.errors import ConfigurationError, TransientError, WaitRegistryError
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.kafka.requests import answered
from wait_registry.records.topics import TopicPartition
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


# One call of librdkafka reports that no broker is known, another one a timeout.
@pytest.mark.guarantee("P8.4")
@pytest.mark.parametrize("code", ["_TRANSPORT", "_TIMED_OUT"])
def test_after_a_long_silence_the_next_request_has_a_new_client(code: str) -> None:
    asked = Asked()
    asked.answered()
    first = asked.inner
    asked.unanswered(LIMIT_S, getattr(KafkaError, code))
    assert asked.inner is not first
    # As with any new client a refusal counts that came before its first request.
    asked.admin.on_error(REFUSED)
    with pytest.raises(ConfigurationError, match="wrong password"):
        answered(asked.admin, _times_out, "asking")


@pytest.mark.parametrize("order", [1, -1])
def test_the_reason_of_the_client_is_said_whichever_event_came_last(order: int) -> None:
    asked = Asked()
    why = "SSL handshake failed: Disconnected: connecting to a PLAINTEXT broker listener? (after 1ms in SSL_HANDSHAKE)"
    for text in (why, "Disconnected")[::order]:
        asked.admin.on_error(KafkaError(KafkaError._TRANSPORT, text))
    with pytest.raises(TransientError, match=f"the client reports: {re.escape(why)}"):
        answered(asked.admin, _times_out, "asking")
    asked.answered()
    with pytest.raises(TransientError) as later:
        answered(asked.admin, _times_out, "asking")
    assert why not in str(later.value)


def test_quick_failures_keep_the_client() -> None:
    asked = Asked()
    asked.answered()
    first = asked.inner
    for _ in range(4):
        asked.unanswered(LIMIT_S / 10)
    assert asked.inner is first
    asked.unanswered(LIMIT_S / 10)
    assert asked.inner is not first


def test_an_answer_keeps_the_client() -> None:
    asked = Asked()
    first = asked.inner
    for _ in range(10):
        asked.unanswered(LIMIT_S / 3)
        asked.answered()
    assert asked.inner is first


def test_a_client_is_kept_without_a_new_one(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
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


@pytest.mark.parametrize("name", ["_client", "_kafka", "__setstate__", "list_topics"])
def test_a_missing_attribute_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute"):
        getattr(Admin.__new__(Admin), name)


def test_a_copy_asks_the_same_client() -> None:
    admin = Admin(KafkaSettings(bootstrap_servers="127.0.0.1:1"))
    assert copy.copy(admin).list_topics.__self__ is admin.list_topics.__self__


@pytest.mark.parametrize("asks", [False, True])
def test_a_client_is_in_no_reference_cycle_even_after_a_failed_request(asks: bool) -> None:
    gc.disable()
    try:
        client = admin(KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout_s=0.2))
        dropped = weakref.ref(client)
        if asks:
            with pytest.raises(TransientError):
                describe_topic(client, "orders")
        del client
        assert dropped() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("accepted", "during", "error"),
    [
        (True, False, TransientError("no answer")),  # a refusal of days ago
        (True, True, ConfigurationError("wrong password")),
        (False, False, ConfigurationError("wrong password")),
    ],
)
def test_a_refusal_explains_the_first_request_or_the_one_that_it_comes_in(
    accepted: bool, during: bool, error: WaitRegistryError
) -> None:
    asked = Asked()
    if accepted:
        asked.answered()

    def request() -> None:
        if during:
            asked.admin.on_error(REFUSED)
        _times_out()

    if not during:
        asked.admin.on_error(REFUSED)
    with pytest.raises(type(error), match=str(error)):
        answered(asked.admin, request, "asking")


FIRST, SECOND, THIRD = ("orders", 0), ("orders", 1), ("orders", 2)
Partitions = set[TopicPartition]


@pytest.mark.guarantee("P8.21")
@pytest.mark.parametrize(
    ("due", "assigned", "of_others", "differing"),
    [
        pytest.param({FIRST, SECOND}, {FIRST, SECOND}, set(), set(), id="what is due"),
        pytest.param({FIRST, SECOND}, {FIRST}, set(), {SECOND}, id="due and held by no member"),
        pytest.param({FIRST, SECOND}, {FIRST}, {SECOND}, set(), id="due and held by another member"),
        pytest.param({FIRST}, {FIRST, SECOND}, {THIRD}, {SECOND}, id="held and not due"),
    ],
)
def test_a_member_differs_by_what_it_lacks_and_no_other_holds(
    due: Partitions, assigned: Partitions, of_others: Partitions, differing: Partitions
) -> None:
    held = {"own": frozenset(assigned & due), "other": frozenset(of_others)}
    group = GroupDescription(False, held, {"own": frozenset(due), "other": frozenset(of_others)})
    assert group.differing("own", frozenset(assigned)) == differing


def test_an_unknown_member_should_hold_nothing() -> None:
    assert GroupDescription(True, {}, {}).differing("own", frozenset({FIRST})) == {FIRST}
