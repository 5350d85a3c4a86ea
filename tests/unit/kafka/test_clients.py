"""Every client is configured so that nothing is lost, with one security model, and librdkafka accepts it."""

from __future__ import annotations

import io
import logging

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.kafka.client_log import client_logger, log_client_error
from wait_registry.kafka.clients import consumer_config, java_client_config, producer_config
from wait_registry.kafka.security import java_security, librdkafka_security
from wait_registry.settings.kafka import KafkaSettings

KAFKA = KafkaSettings(
    bootstrap_servers="127.0.0.1:1",
    librdkafka={"socket.timeout.ms": 5000, "log_level": 0},
    java={"receive.buffer.bytes": 65536, "allow.auto.create.topics": False},
)


def test_a_producer_is_idempotent_and_partitions_as_java_does() -> None:
    own = {"enable.idempotence": True, "acks": "all", "partitioner": "murmur2_random", "message.timeout.ms": 0}
    given = {"bootstrap.servers": "127.0.0.1:1", "socket.timeout.ms": 5000}
    assert (own | given).items() <= producer_config(KAFKA).items()


def test_a_consumer_reads_committed_records_and_commits_nothing_by_itself() -> None:
    own: dict[str, str | bool] = {"isolation.level": "read_committed", "auto.offset.reset": "error"}
    own |= {"enable.auto.commit": False, "enable.auto.offset.store": False}
    assert own.items() <= consumer_config(KAFKA).items()


@pytest.mark.guarantee("P8.10")
def test_a_record_larger_than_the_producers_queue_is_refused_at_once() -> None:
    tuned = KafkaSettings(bootstrap_servers="127.0.0.1:1", librdkafka={"queue.buffering.max.kbytes": 1024})
    producer = Producer(producer_config(tuned))
    with pytest.raises(KafkaException) as caught:
        producer.produce("wait", bytes(1_048_576))
    assert caught.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    producer.produce("wait", bytes(1_048_000))
    with pytest.raises(BufferError):
        producer.produce("wait", bytes(1_048_000))
    producer.purge()


def test_the_cluster_s_address_cannot_be_changed_by_further_properties() -> None:
    elsewhere = KafkaSettings(bootstrap_servers="here:1", librdkafka={"bootstrap.servers": "there:1"})
    assert producer_config(elsewhere)["bootstrap.servers"] == "here:1"


def test_java_properties_are_texts() -> None:
    assert java_client_config(KAFKA, **{"isolation.level": "read_committed"}) == {
        "bootstrap.servers": "127.0.0.1:1",
        "receive.buffer.bytes": "65536",
        "allow.auto.create.topics": "false",
        "security.protocol": "PLAINTEXT",
        "isolation.level": "read_committed",
    }


def kafka(**security: str) -> KafkaSettings:
    return KafkaSettings.model_validate({"security": security})


PEMS = {"ca": "CA", "certificate": "CERT", "key": "KEY"}
LOGIN = 'org.apache.kafka.common.security.{}LoginModule required username="shop" password="p";'
OWN = {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": "CERT", "ssl.keystore.key": "KEY"}
TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "CA"}


@pytest.mark.parametrize(
    ("security", "librdkafka", "java"),
    [
        ({"protocol": "PLAINTEXT"}, {}, {}),
        *(
            (
                {"protocol": "SASL_SSL", "mechanism": mechanism, "username": "shop", "password": "p", "ca": "CA"},
                {"sasl.mechanism": mechanism, "sasl.username": "shop", "sasl.password": "p", "ssl.ca.pem": "CA"},
                {"sasl.mechanism": mechanism, "sasl.jaas.config": LOGIN.format(module), **TRUST},
            )
            for mechanism, module in (
                ("PLAIN", "plain.Plain"),
                *((f"SCRAM-SHA-{n}", "scram.Scram") for n in (256, 512)),
            )
        ),
        (
            {"protocol": "SSL", **PEMS},
            {"ssl.ca.pem": "CA", "ssl.certificate.pem": "CERT", "ssl.key.pem": "KEY"},
            {**TRUST, **OWN},
        ),
    ],
)
def test_security_is_rendered_for_both_families(
    security: dict[str, str], librdkafka: dict[str, str], java: dict[str, str]
) -> None:
    protocol = {"security.protocol": security["protocol"]}
    assert librdkafka_security(kafka(**security)) == protocol | librdkafka
    assert java_security(kafka(**security)) == protocol | java


@given(st.text())
def test_any_password_comes_out_of_the_jaas_text_as_it_went_in(password: str) -> None:
    given_ = kafka(protocol="SASL_SSL", mechanism="PLAIN", username='a"b\\c', password=password)
    jaas = java_security(given_)["sasl.jaas.config"]
    assert quoted_strings(jaas) == ['a"b\\c', password]
    assert jaas.endswith('";')


def quoted_strings(text: str) -> list[str]:
    """Read quoted strings by the rules of java.io.StreamTokenizer: C escapes, ended by a quote or a line end."""
    escapes = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "a": "\a"}
    found, reader = [], io.StringIO(text, newline="")
    while char := reader.read(1):
        if char != '"':
            continue
        content = ""
        while (char := reader.read(1)) not in ('"', "\n", "\r", ""):
            if char == "\\":
                char = reader.read(1)
                assert not char.isdigit(), "an octal escape"
                char = escapes.get(char, char)
            content += char
        found.append(content)
    return found


# ---- what clients log


def test_what_comes_as_an_event_too_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    client_logger().error("FAIL [rdkafka#1] refused")
    client_logger().error("something else altogether")
    assert [line.getMessage() for line in caplog.records] == ["something else altogether"]


def test_an_access_problem_is_an_error_and_an_outage_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    log_client_error(KafkaError(KafkaError._AUTHENTICATION, "wrong password, this test"))
    log_client_error(KafkaError(KafkaError._TRANSPORT, "connection lost, this test"))
    assert [line.levelname for line in caplog.records] == ["ERROR", "WARNING"]


def test_clients_are_silent_without_a_logging_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[logging.LogRecord] = []
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(logging, "lastResort", handler := logging.NullHandler())
    monkeypatch.setattr(handler, "handle", heard.append)
    client_logger().error("refused, this test too")
    log_client_error(KafkaError(KafkaError._TRANSPORT, "connection lost, this test too"))
    assert heard == []
    logging.getLogger("another").error("not a client's")
    assert len(heard) == 1
