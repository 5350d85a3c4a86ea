"""`waitreg connect` without a worker: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wait_registry.cli.connect.connector_file import Family, Role, own_files
from wait_registry.cli.main import main

POSTGRES = "postgresql://waitreg:hunter2@db/shop"
# A closed port: a command that asks a worker ends with 1.
NOWHERE = "connect.url=http://127.0.0.1:9"
SET_SINK = ("--set", "sink.kind=connect")
SET_SWEEPER = ("--set", "sweeper.kind=connect")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where no settings file of the checkout is read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WAITREG_POSTGRES__URL", POSTGRES)


def connect(*arguments: str) -> int:
    return main(["connect", "--set", NOWHERE, *arguments])


def test_print_shows_whole_connectors_without_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    assert connect("apply", "--sink", "debezium", "--source", "debezium", "--print") == 0
    printed = capsys.readouterr().out
    decoder, at, names = json.JSONDecoder(), 0, []
    while at < len(printed.rstrip()):
        connector, end = decoder.raw_decode(printed, at)
        names.append(connector["name"])
        at = end + 1
    assert names == ["wait.sink", "dead_letter.sink", "expired.source", "expired.tombstones"]
    assert "hunter2" not in printed
    assert "${env:POSTGRES_PASSWORD}" in printed


@pytest.mark.guarantee("P1.16")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("apply",), "nothing to apply"),
        (("apply", "--json"), "No such option '--json'"),
        (("status", "--sink", "jdbc"), "No such option '--sink'"),
        (("watch", "wait.sink"), "unexpected extra argument (wait.sink)"),
        (("apply", "absent.json"), "can't read absent.json"),
        (("apply", "--sink", "debezium"), "sink.kind is spark: one sink keeps the tables"),
        (("apply", "--source", "debezium"), "sweeper.kind is spark: one service exports"),
        (("apply", "--source", "jdbc", *SET_SWEEPER, *SET_SINK), "would never be exported"),
        (
            ("apply", "--sink", "jdbc", "--print", "--set", "connect.secrets.kafka_key=hunter2"),
            "kafka_key isn't a reference",
        ),
        (("status", "--set", "connect.username=me"), "connect.username is set without connect.password"),
    ],
)
def test_wrong_usage_is_refused_with_a_fix(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
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
        assert connect("apply", "mine.json") == 2
        assert wrong in capsys.readouterr().err
        assert connect("apply", "mine.json", "--print") == 0, "to look at it needs no setting"
        capsys.readouterr()


def test_the_published_connectors_need_no_setting(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for file in sorted((own_files("sink", "jdbc")[0].parent / "published").glob("*.json")):
        assert connect("apply", str(file)) == 1
        assert "no Kafka Connect worker answers" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("status",), ("remove",), ("apply", "--source", "jdbc", *SET_SWEEPER)])
def test_without_a_worker_it_ends_with_1(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert connect(*arguments, "--set", "postgres.url=postgresql://u@127.0.0.1:9/shop") == 1
    errors = capsys.readouterr().err
    assert "no Kafka Connect worker answers at http://127.0.0.1:9" in errors
    assert "because:" not in errors, "it is reported once"
