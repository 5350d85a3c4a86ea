"""A secret on the command line, which the process list shows, is refused and not repeated."""

from __future__ import annotations

import pytest

from wait_registry.cli.main import main
from wait_registry.errors import ConfigurationError
from wait_registry.settings.secrets import refuse_secrets

SECRET = "hunter2-s3cr3t"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.security.password", SECRET),
        ("kafka.security.key", SECRET),
        ("connect.password", SECRET),
        ("postgres.url", f"postgresql://registry:{SECRET}@db/registry"),
        ("postgres.url", f"postgresql://db/registry?user=registry&password={SECRET}"),
        ("postgres.url", f"host=db user=registry password = '{SECRET}'"),
        ("postgres.url", f"postgresql://registry@db/registry?sslkey=k.pem&sslpassword={SECRET}"),
        ("kafka.librdkafka.ssl.key.password", SECRET),
        ("kafka.java.ssl.keystore.key", SECRET),
        ("kafka.java", f'{{"sasl.jaas.config": "{SECRET}"}}'),
        ("spark.conf.spark.hadoop.fs.s3a.secret.key", SECRET),
        ("processor.handler", f"https://shop:{SECRET}@pay.example/charge"),
        ("telemetry.traces_endpoint", f"https://shop:{SECRET}@traces.example/v1/traces"),
    ],
)
def test_a_secret_is_refused_and_the_other_places_are_named(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"--set {name}.*Change the secret.*WAITREG_") as caught:
        refuse_secrets({"wait.partitions": "1", name: value})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("postgres.url", "postgresql://registry@db.internal/registry?sslmode=verify-full&passfile=/run/pgpass"),
        ("postgres.url", "host=db user=registry dbname=registry"),
        ("postgres.url_file", "/run/secrets/url"),
        ("kafka.security.password_file", "/run/secrets/password"),
        ("kafka.security.password", ""),
        ("kafka.security.ca", "-----BEGIN CERTIFICATE-----"),
        ("kafka.security.username", "shop"),
        ("kafka.librdkafka.ssl.key.location", "/run/secrets/key.pem"),
        ("kafka.librdkafka", '{"socket.timeout.ms": 1000}'),
        ("kafka.librdkafka", "no JSON"),
        ("processor.handler", "https://pay.example:8443/charge?at=night"),
        ("kafka.bootstrap_servers", "one:9092,two:9092"),
        ("no.such.setting", "1"),
    ],
)
def test_what_is_no_secret_may_stand_there(name: str, value: str) -> None:
    refuse_secrets({name: value})


def test_the_command_ends_with_2_and_shows_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--set", f"kafka.security.password={SECRET}"]) == 2
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    assert "kafka.security.password_file" in printed.err
