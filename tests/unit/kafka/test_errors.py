"""A client's error becomes the error of the tree that says what to do."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from wait_registry.errors import ConfigurationError, FencedError, PermanentError, TransientError, WaitRegistryError
from wait_registry.kafka.errors import RecordRefused, is_access_problem, is_transient, kafka_failure, write_failure


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._AUTHENTICATION, ConfigurationError),
        (KafkaError._SSL, ConfigurationError),
        (KafkaError.SASL_AUTHENTICATION_FAILED, ConfigurationError),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, ConfigurationError),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ConfigurationError),
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
AT_THE_HANDSHAKE = (
    "sasl_ssl://broker:9093/1: SASL SCRAM-SHA-512 mechanism handshake failed: {}: broker's supported mechanisms: {}"
)
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
        (
            "_AUTHENTICATION",
            AT_THE_HANDSHAKE.format("Broker: Request not valid in current SASL state", ""),
            CHECK,
        ),
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
