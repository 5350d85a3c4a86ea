"""Variables of a connector's file: their values, and that none returns a secret."""

from __future__ import annotations

import pytest

from wait_registry.cli.connect.variables import DERIVED, variable
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.names import setting_names
from wait_registry.settings.root import Settings

SECRET = "hunter2-s3cr3t"
PEM = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----"
GIVEN = {
    "postgres.url": f"postgresql://waitreg:{SECRET}@db.example:5433/shop?sslmode=verify-full",
    "postgres.schema": "registry",
    "kafka.security.password": SECRET,
    "kafka.security.ca": PEM,
    "kafka.security.certificate": PEM,
    "kafka.security.key": PEM,
    "kafka.java.sasl.jaas.config": SECRET,
    "connect.password": SECRET,
    "connect.ca": PEM,
}


def settings(**given: str) -> Settings:
    return load_settings({**GIVEN, **{name.replace("__", "."): value for name, value in given.items()}}, env={})


@pytest.mark.parametrize("name", [*setting_names(), *DERIVED, "kafka.java.sasl.jaas.config"])
def test_no_variable_shows_a_secret(name: str) -> None:
    try:
        said = variable(name, settings())
    except ConfigurationError as error:
        said = str(error)
    assert SECRET not in (said or "")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wait.topic", "waitreg.wait"),
        ("wait.skew_allowance_s", "5"),
        ("wait.partitions", "8"),
        ("telemetry.traces", "false"),
        ("processor.expiry_policy", "dlq"),
        ("sink.dead_letter_topics", "waitreg.dlq"),
        ("postgres.schema", "registry"),
        ("postgres.host", "db.example"),
        ("postgres.port", "5433"),
        ("postgres.database", "shop"),
        ("postgres.user", "waitreg"),
        ("postgres.sslmode", "verify-full"),
        (
            "postgres.jdbc_url",
            "jdbc:postgresql://db.example:5433/shop?sslmode=verify-full&logServerErrorDetail=false",
        ),
        ("postgres.sslrootcert", None),
        ("sweeper.dead_letter_topic", "waitreg.dlq"),
        ("dead_letter.max_message_bytes", "2228224"),
        ("connect.settle_s", "60"),
        ("connect.secrets.postgres_password", "${env:POSTGRES_PASSWORD}"),
    ],
)
def test_a_variable_is_a_setting_or_derived_from_settings(name: str, text: str | None) -> None:
    assert variable(name, settings()) == text


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("sink.dead_letter_topics", {"sink__dead_letter_topics": "a.dlq, b.dlq"}, "a.dlq,b.dlq"),
        ("sweeper.dead_letter_topic", {"dead_letter__topic": "{topic}.dlq"}, "{topic}.dlq"),
        ("sweeper.dead_letter_topic", {"sweeper__default_dead_letter_topic": "{group}.old"}, "{group}.old"),
        ("connect.secrets.postgres_password", {"connect__secrets__postgres_password": "file:/a:b"}, "${file:/a:b}"),
        ("connect.secrets.postgres_password", {"connect__secrets__postgres_password": ""}, ""),
    ],
)
def test_a_variable_follows_the_settings(name: str, given: dict[str, str], text: str) -> None:
    assert variable(name, settings(**given)) == text


SECRET_REFUSED = "would put a secret"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("postgres.url", (SECRET_REFUSED, "${postgres.jdbc_url}")),
        ("postgres.password", (SECRET_REFUSED, "${connect.secrets.postgres_password}")),
        ("kafka.security.password", (SECRET_REFUSED, "${connect.secrets.kafka_password}")),
        ("kafka.security.key", (SECRET_REFUSED, "${connect.secrets.kafka_key}")),
        ("connect.password", (SECRET_REFUSED, "${env:NAME}")),
        ("wait.topik", ("did you mean ${wait.topic}?",)),
        ("postgres.jdbcurl", ("did you mean ${postgres.jdbc_url}?",)),
        ("topic.wait", ("they are the settings",)),
        ("processor.group", ("isn't set",)),
        ("processor.topics", ("isn't set",)),
        ("kafka.security.username", ("isn't set",)),
        ("kafka.librdkafka", ("is a table",)),
        ("sink.dead_letter_topics", ("list the topics in sink.dead_letter_topics",)),
    ],
)
def test_a_name_without_a_value_is_refused_with_a_fix(name: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigurationError) as refused:
        variable(name, settings(dead_letter__topic="{topic}.dlq"))
    assert all(word in str(refused.value) for word in (name, *words))
