"""The JSON of a notice: as Alertmanager's webhooks have it, or as Slack or Teams takes it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from sweeper.alerts.notice import Notice, rfc3339
from wait_registry.settings.alerts import WebhookForm

# What Alertmanager sends as the end of an alert that continues: the time zero of Go.
_NOT_ENDED: Final = "0001-01-01T00:00:00Z"

Json: TypeAlias = Mapping[str, Any]


def json_of(form: WebhookForm, notice: Notice) -> Json:
    """Return the body of the POST."""
    return _FORMS[form](notice)


def _alertmanager(notice: Notice) -> Json:
    """As webhook_config of Prometheus' Alertmanager sends it, version 4: a group of one alert."""
    labels = {"alertname": notice.name, "service": "wait-registry"}
    annotations = {"summary": notice.summary, "description": notice.details}
    alert = {
        "status": notice.status,
        "labels": labels,
        "annotations": annotations,
        "startsAt": rfc3339(notice.began_s),
        "endsAt": _NOT_ENDED if notice.ended_s is None else rfc3339(notice.ended_s),
        "generatorURL": notice.link,
        "fingerprint": hashlib.sha256(notice.name.encode()).hexdigest()[:16],
    }
    return {
        "version": "4",
        "groupKey": f'{{}}:{{alertname="{notice.name}"}}',
        "truncatedAlerts": 0,
        "status": notice.status,
        "receiver": "wait-registry",
        "groupLabels": {"alertname": notice.name},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": notice.console,
        "alerts": [alert],
    }


def _slack(notice: Notice) -> Json:
    """As Slack's incoming webhooks take it: nothing in code is formatted, and three characters begin markup."""
    details = notice.details.replace("`", "'")
    lines = [f"*{notice.status.upper()}: {notice.name}*", notice.summary, f"`{details}`"]
    text = _escaped("\n".join(lines))
    return {"text": f"{text}\n<{_escaped(notice.link)}|Open in the console>" if notice.link else text}


def _teams(notice: Notice) -> Json:
    """As a workflow of Teams takes it: an adaptive card, whose text runs have no markup."""
    color = "Attention" if notice.ended_s is None else "Good"
    title = {"text": f"{notice.status.upper()}: {notice.name}", "weight": "Bolder", "color": color}
    runs = (title, {"text": notice.summary}, {"text": notice.details})
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [{"type": "RichTextBlock", "inlines": [{"type": "TextRun", **run}]} for run in runs],
        "actions": [{"type": "Action.OpenUrl", "title": "Open in the console", "url": notice.link}]
        if notice.link
        else [],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


_FORMS: Final[Mapping[WebhookForm, Callable[[Notice], Json]]] = {
    WebhookForm.ALERTMANAGER: _alertmanager,
    WebhookForm.SLACK: _slack,
    WebhookForm.TEAMS: _teams,
}
