"""What a topic takes: a topic that can't be written to is that topic's problem, and batches fit into each."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from itertools import pairwise
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.errors import ConfigurationError
from wait_registry.kafka import targets
from wait_registry.kafka.fenced_producer import ToSend, batches
from wait_registry.kafka.targets import Target, Targets, record_size


class Broker:
    """What a broker with access control answers about the topic orders.dlq."""

    request_timeout_s = 1.0

    def __init__(self, rights: list[AclOperation] | None, refusal: int | None = None) -> None:
        self.rights = rights
        self.refusal = refusal

    def describe_topics(self, *_: object, **__: object) -> dict[str, Future[SimpleNamespace]]:
        future: Future[SimpleNamespace] = Future()
        if self.refusal is None:
            future.set_result(SimpleNamespace(topic_id="id", partitions=[0, 1], authorized_operations=self.rights))
        else:
            future.set_exception(KafkaException(KafkaError(self.refusal)))
        return {"orders.dlq": future}


@pytest.fixture(autouse=True)
def _configured(monkeypatch: pytest.MonkeyPatch) -> None:
    config = {"max.message.bytes": "1000", "cleanup.policy": "compact,delete"}
    monkeypatch.setattr(targets, "topic_config", lambda *_: config)


def look_up(broker: Broker) -> Target:
    return Targets(broker)("orders.dlq")  # type: ignore[arg-type] # answers what is asked of an Admin here


@pytest.mark.parametrize("rights", [[AclOperation.DESCRIBE, AclOperation.WRITE], [AclOperation.ALL], None])
def test_a_topic_that_may_be_written_to_has_no_problem(rights: list[AclOperation] | None) -> None:
    target = look_up(Broker(rights))
    assert (target.problem, target.partitions, target.max_message_bytes, target.compacted) == (None, 2, 1000, True)


def test_a_topic_that_may_not_be_written_to_or_seen_has_a_problem() -> None:
    assert "WRITE" in str(look_up(Broker([AclOperation.DESCRIBE, AclOperation.READ])).problem)
    unseen = look_up(Broker(None, KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert "TOPIC_AUTHORIZATION_FAILED" in str(unseen.problem)


def test_a_cluster_that_refuses_us_is_no_topic_s_problem() -> None:
    with pytest.raises(ConfigurationError):
        look_up(Broker(None, KafkaError.SASL_AUTHENTICATION_FAILED))


@pytest.mark.guarantee("P4.9")
@pytest.mark.parametrize("name", ["", ".", "a/b", "orders dlq", "é", "x" * 250, "x" * 40_000])
def test_a_broker_is_never_asked_about_what_is_no_topics_name(name: str) -> None:
    # One beyond 32,767 bytes makes a request that no broker can read: it hangs up, and all exports would wait for it.
    class Asked:
        request_timeout_s = 1.0

        def describe_topics(self, *_: object, **__: object) -> None:
            raise AssertionError("asked")

    target = Targets(Asked())(name)  # type: ignore[arg-type] # answers nothing
    assert target.problem is not None
    assert "not a topic name" in target.problem
    assert len(target.problem) < 400


LIMITS = {"small": 400, "smaller": 250}

letters = st.builds(
    lambda topic, length: ToSend(topic, None, b"key", bytes(length), [("h", b"v")]),
    st.sampled_from(["small", "smaller", "large"]),
    st.integers(0, 120),
)


def sizes(batch: list[ToSend]) -> Counter[str]:
    """Return the bytes of a batch by topic."""
    counted = Counter[str]()
    for letter in batch:
        counted[letter.topic] += record_size(letter.key, letter.value, letter.headers)
    return counted


@given(st.lists(letters, max_size=50))
def test_batches_fit_into_small_topics_and_end_only_when_full(exported: list[ToSend]) -> None:
    split = list(batches(exported, LIMITS))
    assert [letter for batch in split for letter in batch] == exported
    assert [batch for batch in split if any(sizes(batch)[topic] > limit for topic, limit in LIMITS.items())] == []
    for batch, following in pairwise(split):
        topic = following[0].topic
        assert sizes([*batch, following[0]])[topic] > LIMITS[topic]


def test_a_record_as_large_as_its_topic_takes_waits_for_nothing() -> None:
    letter = ToSend("small", None, None, bytes(300), [])
    assert record_size(letter.key, letter.value, letter.headers) > 300
    assert list(batches([letter], {"small": 300})) == [[letter]]
