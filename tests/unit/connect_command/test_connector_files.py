"""Connectors' files: ours can be filled in, others' mistakes are named with file and property."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.evidence import ROOT
from wait_registry.cli.connect.connector_file import CONNECTORS, NAMES, own_files, plain_secrets, read_connector
from wait_registry.cli.connect.variables import variable
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings

FOLDER = ROOT / "connect-configs"
SECRET = "hunter2-s3cr3t"
SETTINGS = load_settings({"postgres.url": f"postgresql://waitreg:{SECRET}@db/shop", "sink.kind": "connect"}, env={})
FILES = sorted([*FOLDER.glob("*.json"), *FOLDER.glob("published/*.json")])
# Whatever a property that holds a secret is called by a connector.
SECRET_PROPERTY = re.compile(r"password|secret|jaas|ssl\.key$")


def lookup(name: str) -> str:
    return f"<{name}>"


def written(folder: Path, text: str) -> Path:
    file = folder / "my.json"
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_of_ours_is_filled_in_by_settings_alone_and_holds_no_secret(file: Path) -> None:
    connector = read_connector(file, partial(variable, settings=SETTINGS))
    assert SECRET not in connector.as_json()
    for key, value in connector.config.items():
        if SECRET_PROPERTY.search(key) and not value.startswith("io."):
            assert re.search(r"\$\{[a-z]+:[^{}]+\}", value), f"{key} is no reference to a ConfigProvider"


@pytest.mark.parametrize("role", CONNECTORS)
@pytest.mark.parametrize("family", ["debezium", "jdbc"])
def test_the_files_of_a_family_are_there_under_the_published_names(role: str, family: str) -> None:
    files = own_files(role, family)  # type: ignore[arg-type]
    assert [json.loads(file.read_text("utf-8"))["name"] for file in files] == list(CONNECTORS[role])  # type: ignore[index]


def test_a_name_belongs_to_one_role() -> None:
    assert len(set(NAMES)) == len(NAMES) == 4


def test_only_our_variables_are_filled_in(tmp_path: Path) -> None:
    config = {
        "connector.class": "x.Sink",
        "ours": "a ${wait.topic} b ${postgres.user}",
        "provider": "${env:PASSWORD} ${file:/a/b.properties:key} ${vault:x}",
        "the connector's own": "${topic}-${source.table}",
        "plain": "$${wait.topic} $1 {group} ${",
        "named by ${postgres.schema}": "x",
        "number": 5,
        "truth": True,
    }
    file = written(tmp_path, json.dumps({"name": "${wait.topic}.sink", "config": config}))
    connector = read_connector(file, lookup)
    assert connector.name == "<wait.topic>.sink"
    assert connector.config == {
        "connector.class": "x.Sink",
        "ours": "a <wait.topic> b <postgres.user>",
        "provider": "${env:PASSWORD} ${file:/a/b.properties:key} ${vault:x}",
        "the connector's own": "${topic}-${source.table}",
        "plain": "${wait.topic} $1 {group} ${",
        "named by <postgres.schema>": "x",
        "number": "5",
        "truth": "true",
    }


def test_a_property_that_has_nothing_to_say_is_left_out(tmp_path: Path) -> None:
    config = '{"connector.class": "x", "a": "${nothing}", "b": "b ${nothing}", "c": "c"}'
    file = written(tmp_path, f'{{"name": "n", "config": {config}}}')
    assert read_connector(file, lambda _: None).config == {"connector.class": "x", "c": "c"}


def test_no_name_is_made_of_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, '{"name": "${nothing}", "config": {"connector.class": "x"}}')
    with pytest.raises(ConfigurationError, match=r"my.json: name: \$\{nothing\} has no value"):
        read_connector(file, lambda _: None)


def test_what_a_variable_stands_for_is_not_filled_in_again(tmp_path: Path) -> None:
    file = written(tmp_path, '{"name": "n", "config": {"connector.class": "x", "a": "${b.c}"}}')
    assert read_connector(file, lambda _: "${wait.topic}").config["a"] == "${wait.topic}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "expected"),
        ('{"name": "n"}', "expected"),
        ('{"name": "n", "config": {}, "more": 1}', "expected"),
        ('{"name": "n", "config": []}', '"config" must be an object'),
        ('{"name": "n", "config": {}}', 'has no "connector.class"'),
        ('{"name": "n", "config": {"connector.class": "x", "a": null}}', "a is null"),
        ('{"name": "n", "config": {"connector.class": "x", "a": {"b": 1}}}', "expected text, a number or a boolean"),
        ('{"name": "n", "config": {"connector.class": "x", "a": 1, "a": 2}}', "a is in it twice"),
        (
            '{"name": "n", "config": {"connector.class": "x", "a.${wait.topic}": 1, "a.waitreg.wait": 2}}',
            "a.waitreg.wait is in it twice once",
        ),
        ('{"name": "n", "config": {"connector.class": "x", "a": "${wait.topik}"}}', "my.json: a: there is no variable"),
    ],
)
def test_a_file_that_is_none_is_refused_with_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_connector(written(tmp_path, text), partial(variable, settings=SETTINGS))
    assert said in str(refused.value)
    assert "my.json" in str(refused.value)


def test_a_file_that_spells_a_secret_out_is_warned_of_without_the_secret(tmp_path: Path) -> None:
    config = {
        "connector.class": "x",
        "connection.password": SECRET,
        "connection.url": f"jdbc:postgresql://db/shop?user=u&password={SECRET}",
        "consumer.override.sasl.jaas.config": f'x.Login required username="u" password="{SECRET}";',
        "producer.override.sasl.jaas.config": 'x.Login required username="u" password="${env:PASSWORD}";',
        "database.password": "${env:PASSWORD}",
        "empty.password": "",
    }
    file = written(tmp_path, json.dumps({"name": "n", "config": config}))
    said = list(plain_secrets([read_connector(file, lookup)]))
    named = ["connection.password", "connection.url", "consumer.override.sasl.jaas.config"]
    assert [sentence.split(": ")[1].split()[0] for sentence in said] == named
    assert SECRET not in "".join(said)
    assert list(plain_secrets(read_connector(ours, partial(variable, settings=SETTINGS)) for ours in FILES)) == []


def test_of_a_file_that_is_not_there_the_nearest_or_our_own_is_named(tmp_path: Path) -> None:
    written(tmp_path, "{}")
    with pytest.raises(ConfigurationError, match=rf"no such file in {tmp_path}; did you mean {tmp_path}/my.json\?"):
        read_connector(tmp_path / "mi.json", lookup)
    with pytest.raises(ConfigurationError, match="`connect apply --source debezium` takes this project's file"):
        read_connector(tmp_path / "expired.source", lookup)
    with pytest.raises(ConfigurationError, match=r"expected a file \{"):
        read_connector(tmp_path / "else.txt", lookup)
