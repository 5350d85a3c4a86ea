"""A client's error says what to do; a request that fails for a moment is sent again within its limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from wait_registry.errors import ConfigurationError, FencedError, PermanentError, TransientError, WaitRegistryError
from wait_registry.kafka import positions
from wait_registry.kafka.clients import admin
from wait_registry.kafka.errors import RecordRefused, is_access_problem, is_transient, kafka_failure, write_failure
from wait_registry.kafka.positions import earliest_offsets, end_offsets
from wait_registry.kafka.requests import DEFAULT_TIMEOUT_S, persistently, timeout_of
from wait_registry.settings.kafka import KafkaSettings


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._AUTHENTICATION, ConfigurationError),
        (KafkaError._SSL, ConfigurationError),
        (KafkaError.SASL_AUTHENTICATION_FAILED, ConfigurationError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ConfigurationError),
        (KafkaError.INCONSISTENT_GROUP_PROTOCOL, ConfigurationError),
        (KafkaError.GROUP_ID_NOT_FOUND, ConfigurationError),
        (KafkaError._FENCED, FencedError),
        (KafkaError.PRODUCER_FENCED, FencedError),
        (KafkaError._TRANSPORT, TransientError),
        (KafkaError._ALL_BROKERS_DOWN, TransientError),
        (KafkaError._DESTROY_BROKER, TransientError),
        (KafkaError._TIMED_OUT, TransientError),
        (KafkaError.NOT_LEADER_FOR_PARTITION, TransientError),
        (KafkaError.FENCED_LEADER_EPOCH, TransientError),
        (KafkaError.UNKNOWN_LEADER_EPOCH, TransientError),
        (KafkaError.NOT_ENOUGH_REPLICAS, TransientError),
        (KafkaError.INVALID_PRODUCER_ID_MAPPING, TransientError),
        (KafkaError.INVALID_TXN_STATE, TransientError),
        (KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, TransientError),
        (KafkaError.MSG_SIZE_TOO_LARGE, RecordRefused),
        (KafkaError.INVALID_RECORD, RecordRefused),
        (KafkaError.INVALID_CONFIG, PermanentError),
    ],
)
def test_an_error_is_translated_by_what_it_asks_for(code: int, kind: type[WaitRegistryError]) -> None:
    for given in (KafkaError(code), KafkaException(KafkaError(code))):
        failure = kafka_failure(given, "listing offsets")
        assert type(failure) is kind
        assert str(failure).startswith("listing offsets failed: ")
        assert KafkaError(code).name() in str(failure)


CODES = {name: code for name, code in vars(KafkaError).items() if isinstance(code, int) and code != KafkaError.NO_ERROR}
OF_A_RECORD = {"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TIMESTAMP"}


def test_only_what_is_said_of_a_record_is_a_verdict_on_it() -> None:
    failures = {name: write_failure(KafkaError(code), "writing") for name, code in CODES.items()}
    assert {name for name, failure in failures.items() if isinstance(failure, PermanentError)} == OF_A_RECORD
    assert {type(failures[name]) for name in OF_A_RECORD} == {RecordRefused}
    assert type(failures["_UNKNOWN_PARTITION"]) is TransientError


def test_an_unlisted_error_that_the_broker_calls_retriable_is_transient() -> None:
    assert is_transient(KafkaError(KafkaError.UNKNOWN_PRODUCER_ID, "later", False, True))
    assert not is_transient(KafkaError(KafkaError.UNKNOWN_PRODUCER_ID, "no", True, True))


def test_an_exception_without_a_kafka_error_is_permanent() -> None:
    assert type(kafka_failure(KafkaException("odd"), "x")) is PermanentError


IN_THE_CONNECTION = "ssl://broker:9093: Disconnected: error:0A000000:SSL routines::{}"
AT_THE_HANDSHAKE = "sasl_ssl://broker/1: SASL SCRAM-SHA-512 mechanism handshake failed: {}: broker's supported: {}"
IN_TLS = "ssl://broker:9093/bootstrap: SSL handshake failed: {} (after 9ms in state SSL_HANDSHAKE)"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        *(
            ("_TRANSPORT", IN_THE_CONNECTION.format(alert))
            for alert in ("tlsv1 alert internal error", "tlsv1 alert user cancelled", "tls alert notify")
        ),
        *(
            ("_AUTHENTICATION", AT_THE_HANDSHAKE.format(why, "(n/a)"))
            # The last is the coordinator's connection, when another broker becomes it.
            for why in ("Local: Broker transport failure", "Local: Timed out", "Local: Broker node update")
        ),
        ("_SSL", IN_TLS.format("SSL transport error: Broken pipe")),
        ("_SSL", IN_TLS.format("SSL transport error: No route to host")),
        ("_SSL", IN_TLS.format("error:0A000438:SSL routines::tlsv1 alert internal error: SSL alert number 80")),
    ],
)
def test_a_connection_that_breaks_is_no_refusal(code: str, text: str) -> None:
    error = KafkaError(getattr(KafkaError, code), text)
    assert is_transient(error)
    assert not is_access_problem(error)
    assert type(kafka_failure(error, "x")) is TransientError


OUR_CERTIFICATE, CHECK = "The broker refuses our certificate", "Check kafka.security"
THEIR_CERTIFICATE = "The broker's certificate must be valid now"


@pytest.mark.parametrize(
    ("code", "text", "fix"),
    [
        *(
            ("_TRANSPORT", IN_THE_CONNECTION.format(alert), OUR_CERTIFICATE)
            for alert in (
                "ssl/tls alert bad certificate",
                "sslv3 alert certificate expired",
                "sslv3 alert certificate unknown",
                "tlsv1 alert unknown ca",
                "tlsv13 alert certificate required",
                "tlsv1 alert access denied",
                "sslv3 alert handshake failure",
            )
        ),
        (
            "_AUTHENTICATION",
            AT_THE_HANDSHAKE.format("Broker: Unsupported SASL mechanism", "PLAIN,SCRAM-SHA-256"),
            CHECK,
        ),
        ("_AUTHENTICATION", AT_THE_HANDSHAKE.format("Broker: Request not valid in current SASL state", ""), CHECK),
        ("_AUTHENTICATION", "SASL authentication error: Authentication failed: Invalid username or password", CHECK),
        ("_SSL", IN_TLS.format("error:0A000086:SSL routines::certificate verify failed"), THEIR_CERTIFICATE),
        ("_SSL", IN_TLS.format("error:0A000410:SSL routines::ssl/tls alert handshake failure"), OUR_CERTIFICATE),
        ("_SSL", IN_TLS.format("error:0A00010B:SSL routines::wrong version number"), THEIR_CERTIFICATE),
    ],
)
def test_a_refusal_says_what_to_correct(code: str, text: str, fix: str) -> None:
    refusal = KafkaError(getattr(KafkaError, code), text)
    assert is_access_problem(refusal)
    assert is_transient(refusal) == (code == "_TRANSPORT")
    failure = kafka_failure(refusal, "x")
    assert type(failure) is ConfigurationError
    assert fix in str(failure)


def test_what_an_operator_can_fix_says_how() -> None:
    names = ("INCONSISTENT_GROUP_PROTOCOL", "GROUP_ID_NOT_FOUND", "_UNKNOWN_PARTITION", "RECORD_LIST_TOO_LARGE")
    said = " ".join(str(kafka_failure(KafkaError(CODES[name]), "x")) for name in names)
    assert all(
        fix in said
        for fix in ("set processor.assignment_strategy", "another type", "topics create", "Raise max.message.bytes")
    )


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


@pytest.mark.parametrize(
    ("error", "failures", "answered"),
    [
        (TransientError("an election"), 2, True),
        # The limit is read at 4 s and ends at 14 s: failures at 8 s and 12 s are repeated, the one at 16 s isn't.
        (TransientError("still an election"), 3, False),
        (ConfigurationError("no permission"), 1, False),
    ],
)
def test_only_a_transient_failure_is_repeated(error: WaitRegistryError, failures: int, answered: bool) -> None:
    calls: list[int] = []

    def request() -> str:
        calls.append(1)
        if len(calls) <= failures:
            raise error
        return "answer"

    if answered:
        assert persistently(CLIENT, request, TurningClock()) == "answer"
    else:
        with pytest.raises(type(error), match=str(error)):
            persistently(CLIENT, request, TurningClock())
    assert len(calls) == failures + answered


def test_the_limit_is_the_setting_s_or_a_default_for_plain_clients() -> None:
    assert timeout_of(CLIENT) == 10
    assert timeout_of(AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})) == DEFAULT_TIMEOUT_S


class Answering(AdminClient):  # type: ignore[misc]
    """A client whose answers about offsets are given."""

    def __init__(self, *offsets: int) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
        self._offsets: Iterator[int] = iter(offsets)

    def list_offsets(
        self, wanted: Mapping[TopicPartition, OffsetSpec], **_: Any
    ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
        answers: dict[TopicPartition, Future[ListOffsetsResultInfo]] = {}
        for asked in wanted:
            answers[asked] = Future()
            answers[asked].set_result(ListOffsetsResultInfo(next(self._offsets), -1, -1))
        return answers


@pytest.mark.parametrize("unknown", [OFFSET_INVALID, -1])
def test_an_answer_without_an_offset_is_asked_for_again(unknown: int) -> None:
    assert end_offsets(Answering(unknown, 29), "wait", [0]) == {0: 29}
    assert earliest_offsets(Answering(unknown, 0), "wait", [0]) == {0: 0}


def test_an_offset_that_stays_unknown_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(positions, "persistently", lambda _, ask: ask())
    with pytest.raises(TransientError, match=r"wait-0.*-1001"):
        end_offsets(Answering(OFFSET_INVALID), "wait", [0])
