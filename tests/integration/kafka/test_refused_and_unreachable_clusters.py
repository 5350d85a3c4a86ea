"""What a wrong address and wrong credentials say, against a real broker."""

from __future__ import annotations

import pytest

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import cluster_id
from wait_registry.settings.kafka import KafkaSettings


def test_a_port_without_a_listener_is_a_transient_error() -> None:
    nowhere = KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout_s=1)
    with pytest.raises(TransientError) as caught:
        cluster_id(admin(nowhere))
    assert "asking 127.0.0.1:1 for its cluster ID failed" in str(caught.value)
    assert "Connection refused" in str(caught.value)


def test_credentials_that_the_listener_refuses_are_an_error(kafka: str) -> None:
    wrong = KafkaSettings.model_validate(
        {
            "bootstrap_servers": kafka,
            "request_timeout_s": 1,
            "security": {
                "protocol": "SASL_PLAINTEXT",
                "mechanism": "PLAIN",
                "username": "shop",
                "password": "hunter2-s3cr3t",
            },
        }
    )
    with pytest.raises(ConfigurationError, match=r"_AUTHENTICATION.*Check kafka\.security") as caught:
        cluster_id(admin(wrong))
    assert "hunter2" not in str(caught.value)


def test_tls_towards_a_plaintext_listener_says_so(kafka: str) -> None:
    wrong = KafkaSettings.model_validate(
        {"bootstrap_servers": kafka, "request_timeout_s": 1, "security": {"protocol": "SSL"}}
    )
    # The client guesses the cause at the first attempt; a later one, all that a slow machine may have seen, says less.
    with pytest.raises(TransientError, match=r"connecting to a PLAINTEXT broker listener|in state SSL_HANDSHAKE"):
        cluster_id(admin(wrong))
