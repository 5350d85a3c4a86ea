"""Connector files: which variables are filled in, and how mistakes are named with file and property."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from wait_registry.cli.connect.connector_file import plain_secrets, read_connector
from wait_registry.cli.connect.variables import variable
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings

SECRET = "hunter2-s3cr3t"
SETTINGS = load_settings({"postgres.url": "postgresql://waitreg@db/shop"}, env={})


def lookup(name: str) -> str | None:
    return None if name == "nothing" else f"<{name}>"


def written(folder: Path, text: str) -> Path:
    file = folder / "my.json"
    file.write_text(text, "utf-8")
    return file


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
        "omitted": "b ${nothing}",
    }
    connector = read_connector(written(tmp_path, json.dumps({"name": "${wait.topic}.sink", "config": config})), lookup)
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


def test_the_value_of_a_variable_is_not_filled_in_again(tmp_path: Path) -> None:
    file = written(tmp_path, '{"name": "n", "config": {"connector.class": "x", "a": "${b.c}"}}')
    assert read_connector(file, lambda _: "${wait.topic}").config["a"] == "${wait.topic}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Invalid JSON"),
        ("[]", "expected"),
        ('{"name": "n"}', "expected"),
        ('{"name": "n", "config": {}, "more": 1}', "expected"),
        ('{"name": "n", "config": []}', "config Input should be"),
        ('{"name": "n", "config": {}}', 'a "connector.class" in'),
        ('{"name": "${nothing}", "config": {"connector.class": "x"}}', 'expected a "name"'),
        ('{"name": "n", "config": {"connector.class": "x", "a": null}}', "config.a"),
        (
            '{"name": "n", "config": {"connector.class": "x", "a": {"b": 1}}}',
            "with texts, numbers and booleans; config.a",
        ),
    ],
)
def test_a_file_of_another_form_is_refused_with_the_reason(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_connector(written(tmp_path, text), lookup)
    assert said in str(refused.value)
    assert "my.json" in str(refused.value)


def test_an_unknown_variable_is_named_with_file_and_property(tmp_path: Path) -> None:
    file = written(tmp_path, '{"name": "n", "config": {"connector.class": "x", "a": "${wait.topik}"}}')
    with pytest.raises(ConfigurationError, match=r"my\.json: a: there is no variable"):
        read_connector(file, partial(variable, settings=SETTINGS))


def test_a_secret_in_plain_text_is_a_warning_without_the_secret(tmp_path: Path) -> None:
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
