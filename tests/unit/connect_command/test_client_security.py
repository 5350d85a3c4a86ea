"""A connector's own clients get the cluster's security, with references instead of secrets."""

from __future__ import annotations

import pytest

from wait_registry.cli.connect.client_security import CLIENTS, with_client_security
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings

SECRET = "hunter2-s3cr3t"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"
GIVEN = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.security.mechanism": "SCRAM-SHA-512",
    "kafka.security.username": 'o"rders',
    "kafka.security.password": SECRET,
    "kafka.security.ca": CERTIFICATE,
    "kafka.security.certificate": CERTIFICATE,
    "kafka.security.key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
    "connect.client_security": "true",
}
OWN = Connector("n", {"connector.class": "x", "consumer.override.security.protocol": "SSL"}, "n.json")


def test_every_client_gets_the_security_with_references() -> None:
    config = with_client_security(OWN, load_settings(GIVEN, env={})).config
    assert SECRET not in str(config)
    for client in CLIENTS:
        login = 'ScramLoginModule required username="o\\"rders" password="${env:KAFKA_PASSWORD}";'
        assert config[f"{client}sasl.jaas.config"].endswith(login)
        assert config[f"{client}ssl.keystore.key"] == "${env:KAFKA_KEY}"
        assert config[f"{client}ssl.truststore.certificates"] == CERTIFICATE
    assert config["producer.override.security.protocol"] == "SASL_SSL"
    assert config["consumer.override.security.protocol"] == "SSL", "the file's own property wins"


def test_without_the_setting_a_connector_is_unchanged() -> None:
    assert with_client_security(OWN, load_settings({**GIVEN, "connect.client_security": "false"}, env={})) == OWN


def test_a_secret_without_a_place_is_refused() -> None:
    settings = load_settings({**GIVEN, "connect.secrets.kafka_password": ""}, env={})
    with pytest.raises(ConfigurationError, match=r"connect\.secrets\.kafka_password is empty"):
        with_client_security(OWN, settings)
