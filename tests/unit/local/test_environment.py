"""A service process reads from its environment the very settings that its starter has."""

from __future__ import annotations

from pathlib import Path

import pytest

from wait_registry.local.environment import as_environment
from wait_registry.settings.loading import load_settings

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
