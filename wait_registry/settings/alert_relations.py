"""Relations between the settings of alerts: rules that can't fire or can't end, and addresses that are none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from yarl import URL

from wait_registry.diagnosis import Diagnosis, error, warning
from wait_registry.settings.alerts import AlertsSettings

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
