"""Alert rules that can't fire, can't end or go nowhere are refused, and no message shows the webhook's address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.settings.alert_relations import NOT_EVALUATED, alert_problems
from wait_registry.settings.alerts import AlertsSettings
from wait_registry.settings.loading import load_settings
from wait_registry.settings.secrets import describe

URL = "https://hooks.example.com/services/secret"


def problems(rules: list[dict[str, Any]], url: str | None = URL, console_url: str = "") -> list[str]:
    values = {"rule": rules, "webhook": {"url": url}, "console_url": console_url}
    return [problem.message for problem in alert_problems(AlertsSettings.model_validate(values))]


@pytest.mark.parametrize(
    ("rules", "url"),
    [
        ([], None),
        ([{"name": "a"}, {"name": "b", "above": 10, "below": 5, "for": "5m", "every": "1d"}], URL),
        ([{"name": "a", "above": 0, "below": 1}], "http://127.0.0.1:9099/hook"),
    ],
)
def test_rules_that_can_fire_and_end(rules: list[dict[str, Any]], url: str | None) -> None:
    assert problems(rules, url, "https://console.example.com") == []


@pytest.mark.parametrize(
    ("rules", "url", "console_url", "message"),
    [
        ([{"name": "a"}], None, "", "alerts.webhook.url isn't set"),
        ([], URL, "", "without any alerts.rule"),
        ([{"name": "a"}], "hooks.example.com/secret", "", "alerts.webhook.url is no address"),
        ([{"name": "a"}], "https://", "", "alerts.webhook.url is no address"),
        ([{"name": "a"}], "ftp://hooks.example.com/secret", "", "alerts.webhook.url is no address"),
        ([{"name": "a"}], URL, "console.example.com", "alerts.console_url is no address"),
        ([{"name": "a"}, {"name": "a"}], URL, "", "several rules of alerts.rule have the name 'a'"),
        ([{"name": NOT_EVALUATED}], URL, "", "which the sweeper uses"),
        ([{"name": "a", "above": 3, "below": 5}], URL, "", "set 'below' to 4 or less"),
    ],
)
def test_a_contradiction_is_named(rules: list[dict[str, Any]], url: str | None, console_url: str, message: str) -> None:
    (found,) = problems(rules, url, console_url)
    assert message in found
    assert "secret" not in found.replace("a secret", "")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"for": "0s"}, "expected a whole number and s, m, h or d"),
        ({"window": "1w"}, "expected a whole number and s, m, h or d"),
        ({"every": ""}, "expected a whole number and s, m, h or d"),
        ({"above": -1}, "greater than or equal to 0"),
        ({"name": "a\nb"}, "should match pattern"),
        ({"abov": 3}, "Extra inputs"),
        ({"hold": "5m"}, "Extra inputs"),
    ],
)
def test_a_bad_value_of_a_rule_is_refused(changes: dict[str, Any], message: str) -> None:
    variables = {"WAITREG_ALERTS__RULE": orjson.dumps([{"name": "a", **changes}]).decode()}
    with pytest.raises(ConfigurationError, match=message):
        load_settings({}, env=variables)


def test_a_file_has_a_rule_as_a_table_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "waitreg.toml"
    rule = '[[alerts.rule]]\nname = "a"\nfilter = ["group=payments", "error=*Timeout*"]\nfor = "5m"\n'
    file.write_text(f'[alerts.webhook]\nurl = "{URL}"\nform = "slack"\n{rule}')
    settings = load_settings(config_file=file, env={})
    (found,) = settings.alerts.rule
    assert (found.filter, found.hold_s, found.every_s) == (("group=payments", "error=*Timeout*"), 300, 4 * 3_600)
    shown = describe(settings)
    assert URL not in shown and "'for': '5m'" in shown
