"""No way of printing settings shows a secret, and one on the command line is refused."""

from __future__ import annotations

import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.masking import describe, refuse_secrets
from wait_registry.settings.names import setting_names
from waitreg.main import main

SECRET = "hunter2-s3cr3t"
PEM = f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----"

GIVEN = {
    "postgres.url": f"postgresql://waitreg:{SECRET}@db/shop",
    "kafka.security.password": SECRET,
    "kafka.security.ca": PEM,
    "kafka.security.certificate": PEM,
    "kafka.security.key": PEM,
    "kafka.librdkafka.ssl.key.password": SECRET,
    "kafka.librdkafka.sasl.oauthbearer.client.credentials.client.secret": SECRET,
    "kafka.java.sasl.jaas.config": SECRET,
    "kafka.java.ssl.keystore.key": PEM,
    "spark.conf.spark.hadoop.fs.s3a.access.key": SECRET,
    "console.oidc.client_secret": SECRET,
    "console.signing_key": f"{SECRET} {SECRET} {SECRET}",
    "processor.handler": f"https://user:{SECRET}@pay.example/charge",
    "processor.routes": f'[{{"handler": "https://user:{SECRET}@ship.example/send"}}]',
}


def test_the_listing_has_every_setting_and_no_secret() -> None:
    listing = describe(load_settings(GIVEN, env={}))
    assert SECRET not in listing
    assert "pay.example/charge" in listing
    tables = ("kafka.librdkafka", "kafka.java", "spark.conf")
    for name in setting_names():
        assert f"{name}." in listing if name in tables else f"{name} = " in listing


@pytest.mark.parametrize("name", [name for name in GIVEN if name not in ("processor.handler", "processor.routes")])
def test_the_repr_of_settings_has_no_secret(name: str) -> None:
    settings = load_settings({name: GIVEN[name]}, env={})
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(
            ({name: SECRET, "wait.partitions": "0"}, "wait.partitions is '0'")
            for name in ("kafka.security.password", "kafka.security.key", "postgres.url")
        ),
        ({"kafka.librdkafka": f"sasl.password={SECRET}"}, "given as a JSON object"),
        ({"kafka.librdkafka": f'{{"ssl.key.password": ["{SECRET}"]}}'}, "librdkafka.ssl.key.password is **********"),
    ],
)
def test_a_refusal_shows_no_secret(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(given, env={})
    assert said in str(caught.value)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.security.password", SECRET),
        ("kafka.security.key", SECRET),
        ("connect.password", SECRET),
        ("processor.schema_registry.password", SECRET),
        ("processor.schema_registry.url", f"https://shop:{SECRET}@schemas.example"),
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
def test_a_value_without_a_secret_is_accepted(name: str, value: str) -> None:
    refuse_secrets({name: value})


def test_the_command_ends_with_2_and_shows_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--set", f"kafka.security.password={SECRET}"]) == 2
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    assert "kafka.security.password_file" in printed.err
