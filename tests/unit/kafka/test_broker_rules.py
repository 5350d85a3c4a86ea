"""What brokers answer to ApiVersions, and what is concluded from the answers of each version."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from wait_registry.diagnosis import Severity
from wait_registry.errors import PermanentError
from wait_registry.kafka.api_versions import CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, BrokerSupport, read_answer
from wait_registry.kafka.broker_question import AskedBroker, ask_broker
from wait_registry.kafka.broker_rules import group_protocol_problem, share_problem, version_lines

GROUPS, SHARES = CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT


def broker(level: int | None, apis: tuple[int, ...] = (GROUPS, SHARES), **features: int) -> AskedBroker:
    finalized = {f"{name}.version": number for name, number in features.items()}
    supported = {} if level is None else {"metadata.version": level}
    return AskedBroker("kafka:9092", BrokerSupport(frozenset(apis), supported, finalized))


OTHER_SOFTWARE = broker(None)
# As real brokers of these versions answered.
V3_7 = broker(19, (GROUPS,), metadata=19)
V3_9 = broker(21, (GROUPS,), metadata=21)
V4_0 = broker(25, (GROUPS,), metadata=25, group=1)
V4_1 = broker(27, metadata=27, group=1)
V4_2 = broker(29, metadata=29, group=1, share=1)
V4_3 = broker(30, metadata=30, group=1, share=1)
V4_4 = broker(33, metadata=33, group=1, share=2)
NOT_UPGRADED = broker(29, metadata=21)
UNASKED = AskedBroker("kafka:9092", None, failure="no route")


@pytest.mark.parametrize(
    ("asked", "said", "warning"),
    [
        ([broker(14)], "Kafka older than 3.7", "wasn't tested"),
        ([V3_7], "Kafka 3.7", ""),
        ([broker(20)], "Kafka 3.8", ""),
        ([V3_9], "Kafka 3.9", ""),
        ([V4_0], "Kafka 4.0", ""),
        ([V4_1], "Kafka 4.1", ""),
        ([V4_2, V4_2], "Kafka 4.2 (2 brokers); features: group.version 1, metadata.version 29, share.version 1", ""),
        ([V4_2, V4_3], "Kafka 4.2, 4.3", "brokers of Kafka 4.3: if one crashes"),
        ([V4_4], "Kafka 4.4", "brokers of Kafka 4.4: if one crashes"),
        ([broker(34)], "Kafka newer than 4.4", "wasn't tested"),
        ([OTHER_SOFTWARE], "Kafka unknown; features: none reported", ""),
        ([V4_2, UNASKED], "Kafka 4.2", "1 of 2 brokers can't be asked what they support; kafka:9092: no route"),
    ],
)
def test_versions_are_named_and_some_are_warned_of(asked: list[AskedBroker], said: str, warning: str) -> None:
    first, *others = version_lines(asked)
    assert (first.severity, said in first.message) == (Severity.OK, True), first
    assert [line.severity for line in others] == [Severity.WARNING] * bool(warning)
    assert all(warning in line.message and line.fix for line in others), others


@pytest.mark.parametrize(
    ("asked", "protocols", "said"),
    [
        ([V3_7], "classic", "broker kafka:9092 (Kafka 3.7) doesn't have it: the feature group.version is off"),
        ([V3_9], None, "(Kafka 3.9) doesn't have it"),
        ([V4_2, NOT_UPGRADED], None, "(Kafka 4.2) doesn't have it: the feature group.version is off"),
        ([broker(None, ())], None, "broker kafka:9092 doesn't have it"),
        ([V4_2], "classic", "the brokers' group.coordinator.rebalance.protocols is classic"),
        ([V4_0], "classic, Consumer", ""),
        ([V4_2], None, ""),
        ([OTHER_SOFTWARE], None, ""),
        ([UNASKED], None, ""),
    ],
)
def test_a_missing_consumer_protocol_is_refused(asked: list[AskedBroker], protocols: str | None, said: str) -> None:
    problem = group_protocol_problem(asked, protocols)
    assert (problem is None) is not bool(said)
    if problem is not None:
        assert (problem.severity, said in problem.message) == (Severity.ERROR, True), problem
        assert 'processor.group_protocol to "classic"' in problem.fix


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ([V3_9], "(Kafka 3.9) doesn't have it"),
        ([V4_1], "the feature share.version is off"),
        ([V4_2], ""),
        ([V4_4], ""),
        ([OTHER_SOFTWARE], ""),
    ],
)
def test_share_groups_are_refused_where_they_are_missing_or_off(asked: list[AskedBroker], said: str) -> None:
    problem = share_problem(asked)
    assert (problem is None) is not bool(said)
    assert problem is None or (said in problem.message and "share.version=1" in problem.fix), problem


ANSWERS = Path(__file__).parent / "api_versions"


OF_4_2 = {f"{name}.version": 1 for name in ("eligible.leader.replicas", "group", "kraft", "share", "streams")}


def answer_of(version: str) -> bytes:
    return bytes.fromhex((ANSWERS / f"kafka-{version}.hex").read_text("ascii"))


@pytest.mark.parametrize(
    ("version", "level", "shares", "finalized"),
    [
        ("3.9.1", 21, False, {"kraft.version": 1, "metadata.version": 21}),
        ("4.2.1", 29, True, {**OF_4_2, "metadata.version": 29, "transaction.version": 2}),
    ],
)
def test_features_of_a_broker_are_read(version: str, level: int, shares: bool, finalized: dict[str, int]) -> None:
    support = read_answer(answer_of(version))
    assert support.supported == {"metadata.version": level}
    assert support.finalized == finalized
    assert CONSUMER_GROUP_HEARTBEAT in support.apis, "3.9 lists it without the feature"
    assert (SHARE_GROUP_HEARTBEAT in support.apis) is shares


def test_an_answer_that_is_cut_anywhere_is_refused() -> None:
    whole = answer_of("4.2.1")
    for size in range(len(whole)):
        with pytest.raises(PermanentError, match="ApiVersions"):
            read_answer(whole[:size])


def test_a_refusal_is_named_with_its_code() -> None:
    with pytest.raises(PermanentError, match="refuses ApiVersions version 3 with error 35"):
        read_answer(b"\0\0\0\0\0\x23\0\0\0\0")


def test_a_broker_that_sends_byte_after_byte_is_waited_for_no_longer_than_asked() -> None:
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with suppress(OSError), listener.accept()[0] as connection:
                connection.recv(1024)
                connection.sendall(bytes((0, 0, 0, 60)))
                for _ in range(60):
                    if not ended.wait(0.05):
                        connection.sendall(b"x")

        thread = threading.Thread(target=answer)
        thread.start()
        asked = ask_broker(f"127.0.0.1:{listener.getsockname()[1]}", None, time.monotonic() + 0.5)
    ended.set()
    thread.join()
    assert "timed out" in asked.failure
