"""One security model, rendered for librdkafka and for Java."""

from __future__ import annotations

import io

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.kafka.security import java_security, librdkafka_security
from wait_registry.settings.kafka import KafkaSettings


def kafka(**security: str) -> KafkaSettings:
    return KafkaSettings.model_validate({"security": security})


def test_without_security_only_the_protocol_is_set() -> None:
    assert librdkafka_security(kafka()) == {"security.protocol": "PLAINTEXT"}
    assert java_security(kafka()) == {"security.protocol": "PLAINTEXT"}


def test_a_password_is_rendered_for_librdkafka() -> None:
    given_ = kafka(protocol="SASL_SSL", mechanism="SCRAM-SHA-512", username="shop", password="p", ca="CA")
    assert librdkafka_security(given_) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "shop",
        "sasl.password": "p",
        "ssl.ca.pem": "CA",
    }


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [("PLAIN", "plain.Plain"), ("SCRAM-SHA-256", "scram.Scram"), ("SCRAM-SHA-512", "scram.Scram")],
)
def test_a_password_is_rendered_for_java(mechanism: str, module: str) -> None:
    given_ = kafka(protocol="SASL_SSL", mechanism=mechanism, username="shop", password="p", ca="CA")
    assert java_security(given_) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": (
            f'org.apache.kafka.common.security.{module}LoginModule required username="shop" password="p";'
        ),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
    }


def test_a_client_certificate_is_rendered_for_both() -> None:
    given_ = kafka(protocol="SSL", ca="CA", certificate="CERT", key="KEY")
    assert librdkafka_security(given_) == {
        "security.protocol": "SSL",
        "ssl.ca.pem": "CA",
        "ssl.certificate.pem": "CERT",
        "ssl.key.pem": "KEY",
    }
    assert java_security(given_) == {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "CA",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "CERT",
        "ssl.keystore.key": "KEY",
    }


def test_librdkafka_takes_what_is_rendered_for_it() -> None:
    given_ = kafka(protocol="SASL_PLAINTEXT", mechanism="SCRAM-SHA-256", username="shop", password="p")
    Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, **librdkafka_security(given_)})


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
