"""The settings of Kafka Connect, and the security that connectors get from them: no secret is shown."""

from __future__ import annotations

import pytest

from wait_registry.cli.connect.apply import CLIENTS, with_client_security
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.errors import ConfigurationError
from wait_registry.settings.connect_relations import connect_problems, require_connect
from wait_registry.settings.loading import load_settings

SECRET = "hunter2-s3cr3t"
PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"
SECURED = {
    "kafka.security.protocol": "SASL_SSL",
    "kafka.security.mechanism": "SCRAM-SHA-512",
    "kafka.security.username": 'o"rders',
    "kafka.security.password": SECRET,
    "kafka.security.ca": PEM,
    "kafka.security.certificate": PEM,
    "kafka.security.key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
    "connect.client_security": "true",
}
OWN = Connector("n", {"connector.class": "x", "consumer.override.security.protocol": "SSL"}, "n.json")


def test_the_defaults_fit_together() -> None:
    assert connect_problems(load_settings(env={}).connect) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "connect:8083"}, "expected the http(s) address"),
        ({"url": "http://connect:8083,connect-2:8083"}, "expected the http(s) address"),
        ({"url": ","}, "expected the http(s) address"),
        ({"url": "ftp://connect"}, "expected the http(s) address"),
        ({"url": f"http://user:{SECRET}@connect:8083"}, "connect.url names a user"),
        ({"username": "me"}, "connect.username is set without connect.password"),
        ({"password": SECRET}, "connect.password is set without connect.username"),
        ({"ca": PEM}, "connect.ca is set, but connect.url is http://"),
        ({"ca": SECRET, "url": "https://connect:8083"}, "connect.ca isn't PEM text"),
        ({"secrets.postgres_password": SECRET}, "connect.secrets.postgres_password isn't a reference to a secret"),
        ({"secrets.kafka_key": f"${{env:{SECRET}}}"}, "connect.secrets.kafka_key isn't a reference to a secret"),
        ({"postgres_url": f"postgresql://me:{SECRET}@db/shop"}, "connect.postgres_url holds a password"),
        ({"postgres_url": f"host=db password={SECRET}"}, "connect.postgres_url holds a password"),
        ({"restart_backoff_s": "70"}, "more than connect.restart_backoff_max_s"),
        ({"restart_limit": "100"}, "the limit would never be reached"),
        ({"watch_interval_s": "181"}, "connect.watch_interval_s is 181 s, more than restart_window_s / restart_limit"),
    ],
)
def test_a_contradiction_is_refused_with_a_fix(given: dict[str, str], said: str) -> None:
    settings = load_settings({f"connect.{name}": value for name, value in given.items()}, env={})
    with pytest.raises(ConfigurationError) as refused:
        require_connect(settings.connect)
    assert said in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "reference", ["env:NAME", "file:/run/secrets/c.properties:password", "dir:/run/secrets:pg", "vault:kv/pg:pw", ""]
)
def test_a_secret_may_come_from_any_provider_of_the_worker(reference: str) -> None:
    assert connect_problems(load_settings({"connect.secrets.postgres_password": reference}, env={}).connect) == []


def test_every_client_gets_the_security_with_references() -> None:
    config = with_client_security(OWN, load_settings(SECURED, env={})).config
    assert SECRET not in str(config)
    for client in CLIENTS:
        login = 'ScramLoginModule required username="o\\"rders" password="${env:KAFKA_PASSWORD}";'
        assert config[f"{client}sasl.jaas.config"].endswith(login)
        assert config[f"{client}ssl.keystore.key"] == "${env:KAFKA_KEY}"
        assert config[f"{client}ssl.truststore.certificates"] == PEM
    assert config["producer.override.security.protocol"] == "SASL_SSL"
    assert config["consumer.override.security.protocol"] == "SSL", "the file's own property wins"


def test_without_the_setting_a_connector_is_unchanged() -> None:
    assert with_client_security(OWN, load_settings({**SECURED, "connect.client_security": "false"}, env={})) == OWN


def test_a_secret_without_a_place_is_refused() -> None:
    settings = load_settings({**SECURED, "connect.secrets.kafka_password": ""}, env={})
    with pytest.raises(ConfigurationError, match=r"connect\.secrets\.kafka_password is empty"):
        with_client_security(OWN, settings)
