"""Connector files: which variables are filled in, how mistakes are named, and what this project's own have."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

import pytest

from tests.evidence import ROOT
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.clients import PRODUCER_MAX_MESSAGE_BYTES
from wait_registry.kafka.topic_specs import topic_specs, wait_spec
from wait_registry.settings.loading import load_settings
from waitreg.connect.connector_file import OWN_FILES, connector_path, plain_secrets, read_connector
from waitreg.connect.variables import variable

FOLDER = ROOT / "connect-configs"
SECRET = "hunter2-s3cr3t"
GIVEN = {
    "postgres.url": f"postgresql://waitreg:{SECRET}@db/shop",
    "sink.kind": "connect",
    "dead_letter.topic": "letters",
    "dead_letter.partitions": 7,
    "dead_letter.retention_ms": 86_400_001,
    "wait.partitions": 5,
    "wait.replication_factor": 4,
    "wait.min_insync_replicas": 3,
    "wait.delete_retention_ms": 86_400_002,
    "wait.segment_ms": 3_600_001,
    "wait.max_compaction_lag_ms": 7_200_001,
    "wait.max_message_bytes": 1_000_003,
}
SETTINGS = load_settings({name: str(value) for name, value in GIVEN.items()}, env={})
read = partial(read_connector, variable=partial(variable, settings=SETTINGS))
SECRET_PROPERTY = re.compile(r"password|secret|jaas|ssl\.key$")
# Sources, and sinks that write what they can't read to a topic.
PRODUCING = sorted([*FOLDER.glob("expired.*.json"), *FOLDER.glob("*.sink.debezium.json")])
# The client library's limits: a megabyte in a buffer of 32.
DEFAULTS = {"max.request.size": "1048576", "buffer.memory": "33554432"}
CREATION = "topic.creation.default."


@pytest.mark.parametrize(
    "file", sorted([*FOLDER.glob("*.json"), *FOLDER.glob("published/*.json")]), ids=lambda file: file.name
)
def test_settings_fill_a_file_of_ours_without_a_secret(file: Path) -> None:
    connector = read(file)
    assert SECRET not in connector.as_json()
    assert list(plain_secrets([connector])) == []
    for key, value in connector.config.items():
        if SECRET_PROPERTY.search(key) and not value.startswith("io."):
            assert re.search(r"\$\{[a-z]+:[^{}]+\}", value), f"{key} is no reference to a ConfigProvider"


@pytest.mark.parametrize("name", OWN_FILES)
def test_each_family_has_a_file_for_each_published_name(name: str) -> None:
    assert read(connector_path(name)).name == name.rpartition(".")[0]


@pytest.mark.guarantee("P4.17")
@pytest.mark.parametrize("file", PRODUCING, ids=lambda file: file.name)
def test_a_connector_produces_the_largest_registered_record(file: Path) -> None:
    config = read(file).config
    taken = {name: int(config.get(f"producer.override.{name}", default)) for name, default in DEFAULTS.items()}
    assert taken["max.request.size"] >= PRODUCER_MAX_MESSAGE_BYTES
    assert taken["buffer.memory"] >= taken["max.request.size"], "what doesn't fit into the buffer is refused as well"
    assert len(PRODUCING) == 6


@pytest.mark.parametrize(
    ("connector", "topic"),
    [("expired.source", SETTINGS.dead_letter.topic), ("expired.tombstones", SETTINGS.wait.topic)],
)
def test_a_source_creates_a_topic_as_our_command_does(connector: str, topic: str) -> None:
    config = read(FOLDER / f"{connector}.debezium.json").config
    created = {name.removeprefix(CREATION): value for name, value in config.items() if name.startswith(CREATION)}
    (spec,) = [spec for spec in topic_specs(SETTINGS) if spec.topic == topic]
    sizes = {"partitions": str(spec.partitions), "replication.factor": str(SETTINGS.wait.replication_factor)}
    assert created == {**sizes, **spec.creation_config}
    if topic == SETTINGS.wait.topic:
        assert spec == wait_spec(SETTINGS)
    else:
        assert spec.creation_config["max.message.bytes"] == str(1_000_003 + 131_072)


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
        ('{"name": "n", "config": {"connector.class": "x", "a": {"b": 1}}}', "numbers and booleans; config.a"),
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
