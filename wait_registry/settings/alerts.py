"""Alerts by webhook: which numbers of dead letters are too many, and where that is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from pydantic import AfterValidator, Field, SecretStr
from yarl import URL

from wait_registry.diagnosis import Diagnosis, error, warning
from wait_registry.records.delays import parse_delay
from wait_registry.settings import Section

MOST_COUNTED = 1_000_000


def _delay(text: str) -> str:
    parse_delay(text)
    return text


Delay: TypeAlias = Annotated[str, AfterValidator(_delay)]


class WebhookForm(StrEnum):
    """Whose JSON is sent."""

    ALERTMANAGER = "alertmanager"
    SLACK = "slack"
    TEAMS = "teams"


class AlertRule(Section):
    """One rule of ``alerts.rule``: it fires while there are too many dead letters of its conditions."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$")
    """name of the alert, in messages and metrics"""
    filter: tuple[str, ...] = Field((), max_length=50)
    """conditions on dead letters, as `waitreg dlq list` takes them"""
    window: Delay | None = None
    """age of the dead letters that count, at most; by default any age"""
    above: int = Field(0, ge=0, le=MOST_COUNTED)
    """the alert fires if there are more dead letters"""
    below: int | None = Field(None, ge=1)
    """it is over if there are fewer; by default, if there are no more than 'above'"""
    hold: Delay | None = Field(None, alias="for")
    """how long there must be too many before it fires; by default it fires at once"""
    every: Delay = "4h"
    """pause between two messages of an alert that continues"""

    @property
    def hold_s(self) -> int:
        """How long there must be too many before it fires, s."""
        return 0 if self.hold is None else parse_delay(self.hold)

    @property
    def every_s(self) -> int:
        """The pause between two messages, s."""
        return parse_delay(self.every)


class WebhookSettings(Section):
    """Where alerts are sent, and in which form."""

    url: SecretStr | None = None
    """http(s) address that takes each message as a POST; a secret, because Slack's and Teams' are"""
    form: WebhookForm = WebhookForm.ALERTMANAGER
    """JSON of the messages: as Prometheus' Alertmanager sends them, or as Slack or Teams takes them"""
    timeout_s: float = Field(10.0, gt=0, le=60)
    """how long the receiver may take for an answer, s"""


class AlertsSettings(Section):
    """Alerts by webhook, for places without Prometheus; the sweeper evaluates them."""

    rule: tuple[AlertRule, ...] = ()
    """rules: 'name', 'filter', 'window', 'above', 'below', 'for', 'every'"""
    webhook: WebhookSettings = WebhookSettings()
    """where alerts are sent"""
    console_url: str = ""
    """address by which people reach the console; messages then link to their dead letters"""


# The name of the alert that the rules can't be evaluated.
NOT_EVALUATED: Final = "alert rules not evaluated"


def alert_problems(alerts: AlertsSettings) -> Iterator[Diagnosis]:
    """Yield what is wrong with the rules, or with the addresses."""
    url = "" if alerts.webhook.url is None else alerts.webhook.url.get_secret_value()
    if alerts.rule and not url:
        yield error("alerts.rule has rules, and alerts.webhook.url isn't set: their messages would go nowhere; set it")
    if url and not alerts.rule:
        yield warning("alerts.webhook.url is set without any alerts.rule, so nothing is sent: add a rule")
    for name, address in (("alerts.webhook.url", url), ("alerts.console_url", alerts.console_url)):
        if address and not _is_http(address):
            # The address isn't shown: that of a webhook is a secret.
            yield error(f"{name} is no address that begins with http:// or https:// and a host: correct it")
    counts = Counter(rule.name for rule in alerts.rule)
    for name in (name for name, count in counts.items() if count > 1):
        yield error(f"several rules of alerts.rule have the name {name!r}: give each its own")
    for rule in alerts.rule:
        if rule.name == NOT_EVALUATED:
            yield error(f"a rule of alerts.rule has the name {rule.name!r}, which the sweeper uses: choose another")
        if rule.below is not None and rule.below > rule.above + 1:
            yield error(
                f"alerts.rule {rule.name!r} fires above {rule.above} and is over below {rule.below}, so it would be "
                f"both at once: set 'below' to {rule.above + 1} or less"
            )


def _is_http(address: str) -> bool:
    try:
        url = URL(address)
        return url.scheme in ("http", "https") and bool(url.host)
    except ValueError:
        return False
