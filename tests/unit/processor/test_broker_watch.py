"""Brokers are waited for and the coordinator is asked until the member has its assignment; refusals are warned of."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer

from processor.fault import Fault
from processor.health.broker_connection import FORGOTTEN_AFTER_S, BrokerConnection
from processor.intake.broker_watch import COMPARE_EVERY_S, LOG_WAITING_S, BrokerWatch, Questions
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.membership import Membership
from processor.intake.stop_at_ends import StopAtEnds
from tests.support.waiting import wait_until
from tests.unit.processor.parts import HaltedClock, iterate_until
from wait_registry.errors import ConfigurationError, PermanentError, TransientError, WaitRegistryError
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.group_description import GroupDescription
from wait_registry.settings.processor import GroupProtocol, ProcessorSettings
from wait_registry.settings.tree import Settings

FORGOTTEN = GroupDescription(True, {"other": frozenset()}, {"other": frozenset()})
WITHOUT_PARTITIONS = GroupDescription(True, {"own": frozenset()}, {"own": frozenset()})


class _Watched:
    """A member's watch, whose coordinator answers what the test says."""

    def __init__(self, protocol: GroupProtocol = GroupProtocol.CONSUMER, once: bool = False) -> None:
        self.clock, self.fault = HaltedClock(), Fault()
        self.connection = BrokerConnection(self.fault)
        self.membership = Membership(ProcessorSettings(group_protocol=protocol))
        self.membership.started("own")
        settings = Settings.model_validate({"kafka": {"bootstrap_servers": "127.0.0.1:1"}})
        self.ends = StopAtEnds(settings, {}, self.clock) if once else None
        self.answer: GroupDescription | WaitRegistryError = WITHOUT_PARTITIONS
        self.asked = 0
        nobody: Any = None
        wait_topic, consumed = TopicIdentity("wait", "id", 1), ConsumedTopics("group", {})
        questions = Questions(nobody, wait_topic, consumed, self._describe)
        self.watch = BrokerWatch(questions, self.membership, self.ends, self.connection, self.clock, self.fault)

    def asked_after(self, seconds: float) -> int:
        """Look again after so long; return how often the coordinator was asked until now."""
        self.clock.now_s += seconds
        asyncio.run(self.watch.look_at_the_group())
        return self.asked

    def log_after(self, seconds: float) -> None:
        """Log again after so long what is missing."""
        self.clock.now_s += seconds
        asyncio.run(self.watch.log_waiting())

    def _describe(self) -> GroupDescription:
        self.asked += 1
        if isinstance(self.answer, WaitRegistryError):
            raise self.answer
        return self.answer


def test_it_is_asked_until_the_member_has_its_place_and_then_now_and_again() -> None:
    watched = _Watched()
    watched.answer = GroupDescription()
    assert [watched.asked_after(1) for _ in range(3)] == [1, 2, 3]
    watched.answer = WITHOUT_PARTITIONS
    assert watched.asked_after(1) == 4
    assert watched.membership.joined
    assert watched.asked_after(1) == 4
    assert watched.asked_after(COMPARE_EVERY_S) == 5
    assert watched.asked_after(COMPARE_EVERY_S - 1) == 5


def test_the_classic_protocols_need_no_request() -> None:
    assert _Watched(GroupProtocol.CLASSIC).asked_after(COMPARE_EVERY_S) == 0


@pytest.mark.parametrize("joined", [False, True])
def test_a_refusal_ends_only_who_has_no_place_yet(joined: bool) -> None:
    watched = _Watched()
    watched.membership.joined = joined
    watched.answer = PermanentError("no")
    watched.asked_after(COMPARE_EVERY_S)
    assert (watched.fault.error is None) is joined


async def test_a_question_that_hangs_keeps_neither_the_loop_nor_the_process() -> None:
    asked, answered = list[threading.Thread](), threading.Event()

    def hang() -> GroupDescription:
        asked.append(threading.current_thread())
        answered.wait(30)
        return WITHOUT_PARTITIONS

    watched = _Watched()
    watched.watch.questions = replace(watched.watch.questions, describe_group=hang)
    watching = asyncio.create_task(watched.watch.look_at_the_group())
    await iterate_until(lambda: asked)
    watching.cancel()
    await asyncio.wait([watching], timeout=30)
    assert watching.cancelled()
    assert asked[0].daemon
    answered.set()
    await iterate_until(lambda: not asked[0].is_alive())
    assert not watched.membership.joined


def test_a_missing_answer_ends_no_process() -> None:
    watched = _Watched()
    watched.answer = TransientError("not now")
    watched.asked_after(COMPARE_EVERY_S)
    assert watched.fault.error is None


def _forgotten_once() -> _Watched:
    """Return who isn't in the group at the first look."""
    watched = _Watched()
    watched.membership.joined = True
    watched.answer = FORGOTTEN
    watched.asked_after(COMPARE_EVERY_S)
    return watched


def test_who_is_forgotten_at_two_looks_in_a_row_ends() -> None:
    watched = _forgotten_once()
    with pytest.raises(TransientError, match="is no longer in its group"):
        watched.asked_after(COMPARE_EVERY_S)


def _link_down(watched: _Watched) -> None:
    watched.connection.up = False
    watched.asked_after(1)
    watched.connection.answered()


def _no_answer(watched: _Watched) -> None:
    watched.answer = TransientError("not now")
    watched.asked_after(COMPARE_EVERY_S)
    watched.answer = FORGOTTEN


def _stopped_for_long(watched: _Watched) -> None:
    watched.clock.now_s += COMPARE_EVERY_S + 1


@pytest.mark.guarantee("P8.21")
@pytest.mark.parametrize(
    "meanwhile",
    [
        *(_link_down, _no_answer, _stopped_for_long),
        pytest.param(lambda watched: watched.membership.lost(), id="told that all is lost"),
        pytest.param(lambda watched: watched.membership.assigned("own"), id="told of an assignment"),
    ],
)
def test_an_outage_or_news_between_two_checks_ends_no_process(meanwhile: Callable[[_Watched], None]) -> None:
    watched = _forgotten_once()
    meanwhile(watched)
    watched.asked_after(COMPARE_EVERY_S)
    with pytest.raises(TransientError):  # these two are in a row
        watched.asked_after(COMPARE_EVERY_S)


def test_with_once_a_classic_member_asks_if_only_the_group_knows() -> None:
    watched = _Watched(GroupProtocol.CLASSIC, once=True)
    assert watched.asked_after(1) == 0
    assert watched.ends is not None
    watched.ends.asks = True
    assert watched.asked_after(1) == 1


WAITS = GroupDescription(False, {"other": frozenset()}, {}, {"other": "/10.0.0.7"})


@pytest.mark.parametrize(
    ("protocol", "answer", "said"),
    [
        (GroupProtocol.CLASSIC, WAITS, "waiting for the group to assign some to its 1 members (/10.0.0.7). After a"),
        (GroupProtocol.CLASSIC, GroupDescription(), "the group has no member yet"),
        (GroupProtocol.CLASSIC, TransientError("not now"), "the group's coordinator doesn't answer"),
        (GroupProtocol.CLASSIC, PermanentError("no right"), "no right"),
        (GroupProtocol.CONSUMER, GroupDescription(), "which knows 0 members, doesn't know this one (own)"),
    ],
)
def test_the_wait_for_partitions_is_logged_with_what_is_missing(
    protocol: GroupProtocol, answer: GroupDescription | WaitRegistryError, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    watched = _Watched(protocol)
    watched.answer = answer
    watched.log_after(LOG_WAITING_S - 1)
    assert "no partitions" not in caplog.text
    watched.log_after(1)
    [line] = [line for line in caplog.messages if "no partitions" in line]
    assert line.startswith("no partitions for 5 s: ")
    assert said in line
    assert watched.fault.error is None


def test_the_wait_is_logged_again_after_growing_pauses(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    watched = _Watched(GroupProtocol.CLASSIC)
    for _ in range(800):
        watched.log_after(1)
    watched.membership.joined = True
    watched.log_after(1000)
    lines = [(record.args[0], record.levelname) for record in caplog.records if isinstance(record.args, tuple)]
    assert lines == [(5, "INFO"), (15, "INFO"), (45, "INFO"), (135, "WARNING"), (405, "WARNING"), (705, "WARNING")]


class Watched:
    """What the statistics of one client lead to, at times of the test's choice."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.fault = Fault()
        connection = BrokerConnection(self.fault, monotonic=lambda: self.now_s)
        self.report = connection.stats_config("producer")["stats_cb"]

    def after(self, seconds: float, statistics: str) -> BaseException | None:
        """Report these statistics after some seconds, and return the error that ends the process."""
        self.now_s += seconds
        self.report(statistics)
        return self.fault.error


def real_statistics() -> str:
    """Return the statistics of a client whose bootstrap server doesn't exist."""
    reported: list[str] = []
    client = Producer(
        {"bootstrap.servers": "127.0.0.1:1", "statistics.interval.ms": 10, "stats_cb": reported.append, "log_level": 0}
    )
    wait_until(
        lambda: client.poll(0.01) and reported and '"configured"' in reported[-1],
        30,
        "statistics with its bootstrap server",
    )
    return reported[-1]


ALONE = real_statistics()
# As of a consumer that has lost all brokers except the logical one of its group's coordinator.
NOBODY = ALONE.replace('"source":"configured"', '"source":"logical"')
LEARNED = ALONE.replace('"source":"configured"', '"source":"learned"')


@pytest.mark.guarantee("P8.4")
def test_a_client_without_brokers_is_reported_with_the_fix() -> None:
    assert NOBODY != ALONE
    watched = Watched()
    assert watched.after(0, NOBODY) is None
    assert watched.after(FORGOTTEN_AFTER_S - 1, NOBODY) is None
    error = watched.after(1, NOBODY)
    assert isinstance(error, TransientError)
    assert "the producer's Kafka client has known no broker for 30 s" in str(error)
    assert "Start the process again" in str(error)


def test_who_knows_one_is_not_however_long_it_is_away() -> None:
    for statistics in (ALONE, LEARNED):
        watched = Watched()
        for _ in range(100):
            assert watched.after(FORGOTTEN_AFTER_S, statistics) is None


def test_moments_without_do_not_add_up() -> None:
    watched = Watched()
    for _ in range(10):
        assert watched.after(FORGOTTEN_AFTER_S - 1, NOBODY) is None
        assert watched.after(1, ALONE) is None


@pytest.mark.guarantee("P8.24")
@pytest.mark.parametrize("code", [KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._TIMED_OUT])
def test_an_unreachable_broker_is_no_fault_and_all_of_them_mean_not_ready(code: int) -> None:
    fault = Fault()
    connection = BrokerConnection(fault)
    connection.on_error(KafkaError(code))
    assert fault.error is None
    assert connection.up is (code != KafkaError._ALL_BROKERS_DOWN)
    connection.answered()
    assert connection.up


@pytest.mark.parametrize("code", [KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED])
def test_refused_credentials_end_the_process(code: int) -> None:
    fault = Fault()
    BrokerConnection(fault).on_error(KafkaError(code))
    assert isinstance(fault.error, ConfigurationError)


@pytest.mark.guarantee("P8.7")
def test_a_connection_that_breaks_in_the_handshake_is_no_fault() -> None:
    fault = Fault()
    said = "SASL PLAIN mechanism handshake failed: Local: Broker transport failure: supported mechanisms: (n/a)"
    BrokerConnection(fault).on_error(KafkaError(KafkaError._AUTHENTICATION, said))
    assert fault.error is None
