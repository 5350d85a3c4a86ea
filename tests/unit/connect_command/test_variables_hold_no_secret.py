"""What a connector's file may name, and that no secret comes out whatever it names."""

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
def test_a_setting_is_named_by_its_dotted_name(name: str, text: str | None) -> None:
    assert variable(name, settings()) == text


def test_a_list_is_joined_by_commas() -> None:
    assert variable("sink.dead_letter_topics", settings(sink__dead_letter_topics="a.dlq, b.dlq")) == "a.dlq,b.dlq"


def test_a_source_writes_where_our_sweeper_would() -> None:
    given = settings(dead_letter__topic="{topic}.dlq", sweeper__default_dead_letter_topic="{group}.old")
    assert variable("sweeper.dead_letter_topic", given) == "{group}.old"
    assert variable("sweeper.dead_letter_topic", settings(dead_letter__topic="{topic}.dlq")) == "{topic}.dlq"


def test_where_the_worker_finds_a_secret_is_the_users_choice() -> None:
    chosen = settings(connect__secrets__postgres_password="file:/run/secrets/connect.properties:password")
    said = variable("connect.secrets.postgres_password", chosen)
    assert said == "${file:/run/secrets/connect.properties:password}"
    assert variable("connect.secrets.postgres_password", settings(connect__secrets__postgres_password="")) == ""


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("postgres.url", "${postgres.jdbc_url}"),
        ("postgres.password", "${connect.secrets.postgres_password}"),
        ("kafka.security.password", "${connect.secrets.kafka_password}"),
        ("kafka.security.key", "${connect.secrets.kafka_key}"),
        ("connect.password", "${env:NAME}"),
    ],
)
def test_a_secret_is_refused_with_what_to_write_instead(name: str, instead: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        variable(name, settings())
    assert f"${{{name}}} would put a secret" in str(refused.value)
    assert instead in str(refused.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("wait.topik", "did you mean ${wait.topic}?"),
        ("postgres.jdbcurl", "did you mean ${postgres.jdbc_url}?"),
        ("topic.wait", "they are the settings"),
    ],
)
def test_an_unknown_variable_is_told_the_nearest_one(name: str, near: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        variable(name, settings())
    assert near in str(refused.value)


@pytest.mark.parametrize("name", ["processor.group", "processor.topics", "kafka.security.username", "kafka.librdkafka"])
def test_what_is_not_set_or_is_a_table_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"isn't set|is a table"):
        variable(name, settings())


def test_dead_letter_topics_behind_braces_must_be_listed() -> None:
    with pytest.raises(ConfigurationError, match=r"list the topics in sink\.dead_letter_topics"):
        variable("sink.dead_letter_topics", settings(dead_letter__topic="{topic}.dlq"))
