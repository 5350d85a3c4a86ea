"""Variables of a connector's file and the address of Postgres among them: their values, and no secret."""

from __future__ import annotations

import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.names import setting_names
from wait_registry.settings.tree import Settings
from waitreg.connect.postgres_address import postgres_part
from waitreg.connect.variables import DERIVED, variable

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
        ("postgres.jdbc_url", "jdbc:postgresql://db.example:5433/shop?sslmode=verify-full&logServerErrorDetail=false"),
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
        ("kafka.security.password", (SECRET_REFUSED, "${env:NAME}")),
        ("kafka.security.key", (SECRET_REFUSED, "${env:NAME}")),
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


def part(name: str, url: str, seen_by_worker: str = "") -> str | None:
    return postgres_part(name, load_settings({"postgres.url": url, "connect.postgres_url": seen_by_worker}, env={}))


@pytest.mark.parametrize(
    ("url", "jdbc"),
    [
        ("postgresql://u:secret@db/shop", "jdbc:postgresql://db:5432/shop?sslmode=prefer"),
        ("host=db port=6000 dbname=shop user=u password=secret", "jdbc:postgresql://db:6000/shop?sslmode=prefer"),
        ("postgresql://u@[::1]:5433/shop", "jdbc:postgresql://[::1]:5433/shop?sslmode=prefer"),
        ("postgresql://u@a,b:6000/shop", "jdbc:postgresql://a:5432,b:6000/shop?sslmode=prefer"),
        ("host=a,b port=6000 dbname=shop user=u", "jdbc:postgresql://a:6000,b:6000/shop?sslmode=prefer"),
        ("postgresql://u@db/my%20%2Fshop", "jdbc:postgresql://db:5432/my%20%2Fshop?sslmode=prefer"),
        (
            "postgresql://u@db/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem&target_session_attrs=read-write",
            "jdbc:postgresql://db:5432/shop?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&targetServerType=primary",
        ),
    ],
)
def test_the_jdbc_url_has_the_parts_of_libpqs(url: str, jdbc: str) -> None:
    assert part("jdbc_url", url) == f"{jdbc}&logServerErrorDetail=false"


def test_the_options_of_the_address_name_the_files_of_the_worker() -> None:
    url = "postgresql://u@db/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem&sslkey=/etc/key.pk8"
    files = [part(name, url) for name in ("sslrootcert", "sslcert", "sslkey")]
    assert files == ["/etc/ca.pem", None, "/etc/key.pk8"]


def test_the_worker_may_have_another_address_and_role() -> None:
    urls = "postgresql://waitreg:secret@localhost:15432/shop", "postgresql://connect@postgres/shop"
    found = [part(name, *urls) for name in ("host", "port", "user", "database")]
    assert found == ["postgres", "5432", "connect", "shop"]


@pytest.mark.parametrize(
    ("url", "missing"),
    [
        ("postgresql://db/shop", "postgres.url names no user"),
        ("postgresql://u@db", "postgres.url names no database"),
        ("postgresql://u@/shop", "postgres.url names no host"),
        ("host=/run/postgresql dbname=shop user=u", "no Unix sockets"),
        ("postgresql://u:hunter2@db:port/shop", "can't be read"),
        ("postgresql://u:x@hunter2@db/shop", "can't be read"),
        ("host=a,b port=1,2,3 dbname=shop user=u password=hunter2", "can't be read"),
        ("nonsense hunter2", "can't be read"),
    ],
)
def test_an_address_that_java_cannot_use_is_refused_without_it(url: str, missing: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        part("jdbc_url", url)
    assert missing in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_several_hosts_are_refused_for_a_connector_that_takes_one() -> None:
    with pytest.raises(ConfigurationError, match="names 2 hosts, and this connector takes one"):
        part("host", "postgresql://u@a,b/shop")
