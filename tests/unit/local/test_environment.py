"""A service process reads from its environment the very settings that its starter has."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import SecretStr

from wait_registry.local.environment import as_environment
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.loading import load_settings
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.root import Settings

TOML = """
[processor]
ttl_s = 600
topics = ["orders", "payments"]

[[processor.routes]]
match = { topic = "orders" }
handler = "shop:orders"
max_in_flight = 3

[[alerts.rule]]
name = "open"
filter = ["group=shop", "state=open"]
for = "5m"
above = 10

[alerts.webhook]
url = "http://hook.example.com/secret"
"""


def test_settings_come_through_the_environment_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given.toml").write_text(TOML)
    settings = load_settings(config_file=tmp_path / "given.toml", env={})
    assert settings.alerts.rule[0].hold == "5m" and settings.processor.routes[0].max_in_flight == 3
    assert load_settings(env=as_environment(settings)) == settings


def test_a_process_with_these_variables_reads_the_same_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # no settings file of this checkout
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers="somewhere:1", librdkafka={"session.timeout.ms": 6000}),
        postgres=PostgresSettings(url=SecretStr("postgresql://u:p@h/d"), schema="own"),
        processor=ProcessorSettings(topics=("a", "b"), group="g", ttl_s=13.5, max_in_flight=7),
    )
    assert load_settings(env=as_environment(settings)) == settings
