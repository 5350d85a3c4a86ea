"""`waitreg connect` without a worker: what it prints and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.connect_connectors import Family, Role, own_files
from wait_registry.errors import ConfigurationError
from wait_registry.settings.connect import connect_problems, require_connect
from wait_registry.settings.loading import load_settings
from waitreg.connect.connector_file import OWN_FILES
from waitreg.main import main

POSTGRES = "postgresql://waitreg:hunter2@db/shop"
# A closed port: a command that asks a worker ends with 1.
NOWHERE = "connect.url=http://127.0.0.1:9"
WAIT_SINK, SOURCE = "wait.sink.debezium", "expired.source.debezium"
SET_SINK = ("--set", "sink.kind=connect")
SET_SWEEPER = ("--set", "sweeper.kind=connect")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where no settings file of the checkout is read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAITREG_POSTGRES__URL", POSTGRES)


def connect(*arguments: str) -> int:
    return main(["connect", "--set", NOWHERE, *arguments])


@pytest.mark.parametrize("name", OWN_FILES)
def test_print_shows_a_whole_connector_without_a_password(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert connect("print", name) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["name"] == name.rpartition(".")[0]
    assert "hunter2" not in printed
    assert "${env:POSTGRES_PASSWORD}" in printed


@pytest.mark.guarantee("P1.16")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check",), "Missing argument 'CONNECTOR...'"),
        (("print", "--json", WAIT_SINK), "No such option '--json'"),
        (("watch", "wait.sink"), "unexpected extra argument (wait.sink)"),
        (("print", "absent.json"), "can't read absent.json"),
        (("check", WAIT_SINK), "sink.kind is spark: one sink keeps the tables"),
        (("check", SOURCE), "sweeper.kind is spark: one service exports"),
        (("check", "expired.source.jdbc", *SET_SWEEPER, *SET_SINK), "would never be exported"),
        (("print", WAIT_SINK, "--set", "connect.secrets.postgres_password=x"), "password isn't a reference"),
        (("print", WAIT_SINK, "--set", "connect.username=me"), "connect.username is set without connect.password"),
    ],
)
def test_wrong_usage_has_a_fix(arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert connect(*arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.guarantee("P4.16")
@pytest.mark.parametrize(
    ("role", "family", "wrong"),
    [
        ("sink", "debezium", "sink.kind is spark"),
        ("source", "debezium", "sweeper.kind is spark"),
        ("source", "jdbc", "sweeper.kind is spark"),
    ],
)
def test_a_copy_of_our_file_under_another_name_is_refused_too(
    role: Role, family: Family, wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, file in enumerate(own_files(role, family)):
        document = json.loads(file.read_text("utf-8")) | {"name": f"my.own.{number}"}
        (tmp_path / "mine.json").write_text(json.dumps(document), "utf-8")
        assert connect("check", "mine.json") == 2
        assert wrong in capsys.readouterr().err
        assert connect("print", "mine.json") == 0, "to look at it needs no setting"
        capsys.readouterr()


def test_the_published_connectors_need_no_setting(capsys: pytest.CaptureFixture[str]) -> None:
    for file in sorted((own_files("sink", "jdbc")[0].parent / "published").glob("*.json")):
        assert connect("check", str(file)) == 1
        assert "no Kafka Connect worker answers" in capsys.readouterr().err


def test_without_a_worker_a_check_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert connect("check", SOURCE, *SET_SWEEPER, "--set", "postgres.url=postgresql://u@127.0.0.1:9/shop") == 1
    errors = capsys.readouterr().err
    assert "no Kafka Connect worker answers at http://127.0.0.1:9" in errors
    assert "because:" not in errors, "it is reported once"


SECRET = "hunter2-s3cr3t"
PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"


def test_the_defaults_fit_together() -> None:
    assert connect_problems(load_settings(env={}).connect) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "connect:8083"}, "expected http(s)://host:port, or several with commas"),
        ({"url": "http://connect:8083,connect-2:8083"}, "expected http(s)://host:port, or several with commas"),
        ({"url": ","}, "expected http(s)://host:port, or several with commas"),
        ({"url": "ftp://connect"}, "expected http(s)://host:port, or several with commas"),
        ({"url": f"http://user:{SECRET}@connect:8083"}, "connect.url names a user"),
        ({"username": "me"}, "connect.username is set without connect.password"),
        ({"password": SECRET}, "connect.password is set without connect.username"),
        ({"ca": PEM}, "connect.ca is set, but connect.url is http://"),
        ({"ca": SECRET, "url": "https://connect:8083"}, "connect.ca isn't PEM text"),
        ({"secrets.postgres_password": SECRET}, "connect.secrets.postgres_password isn't a reference to a secret"),
        ({"secrets.postgres_password": f"${{env:{SECRET}}}"}, "isn't a reference to a secret"),
        ({"postgres_url": f"postgresql://me:{SECRET}@db/shop"}, "connect.postgres_url holds a password"),
        ({"postgres_url": f"host=db password={SECRET}"}, "connect.postgres_url holds a password"),
        ({"restart_backoff_s": "190"}, "more than connect.restart_backoff_max_s"),
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
