"""What receivers get, with a link that the console understands, in one POST that they may refuse or not answer."""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from pydantic import SecretStr

from sweeper.alerts.forms import json_of
from sweeper.alerts.notice import MOST, TROUBLE, notice_of
from sweeper.alerts.state import Message
from sweeper.alerts.webhook import Undelivered, post
from tests.support.http_service import Answer, Call, HttpService
from wait_registry.dead_letters.filter import parse_filter
from wait_registry.settings.alerts import AlertRule, WebhookForm
from waitreg.local.ports import LOOPBACK

RULE = AlertRule(name="payment timeouts", filter=("group=pay&co", "error=<*Time`out*>"), window="10m", above=1_000)
FIRING = Message(1_800_000_000.0, None, 1_234)
RESOLVED = Message(1_800_000_000.0, 1_800_000_600.0, 7)
CONSOLE = "https://console.example.com/"
LINK = (
    "https://console.example.com/dead-letters?where=group%3Dpay%26co&where=error%3D%3C%2ATime%60out%2A%3E"
    "&since=2027-01-15T07%3A50%3A00.000Z&by=none"
)


def body(form: str, message: Message, rule: AlertRule = RULE, console: str = CONSOLE) -> Any:
    return json_of(WebhookForm(form), notice_of(rule, message, console))


def test_alertmanagers_form_has_the_fields_of_its_version_4() -> None:
    sent = body("alertmanager", FIRING)
    (alert,) = sent.pop("alerts")
    labels = {"alertname": "payment timeouts", "service": "wait-registry"}
    annotations = {
        "summary": "1,234 dead letters of the last 10m, more than 1,000 since 2027-01-15 08:00:00 UTC",
        "description": "Conditions: group=pay&co error=<*Time`out*>",
    }
    assert sent == {
        "version": "4",
        "groupKey": '{}:{alertname="payment timeouts"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "wait-registry",
        "groupLabels": {"alertname": "payment timeouts"},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "https://console.example.com",
    }
    assert len(alert.pop("fingerprint")) == 16
    assert alert == {
        "status": "firing",
        "labels": labels,
        "annotations": annotations,
        "startsAt": "2027-01-15T08:00:00.000Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": LINK,
    }


def test_alertmanagers_form_says_when_an_alert_has_ended() -> None:
    (alert,) = body("alertmanager", RESOLVED)["alerts"]
    assert (alert["status"], alert["endsAt"]) == ("resolved", "2027-01-15T08:10:00.000Z")
    assert alert["fingerprint"] == body("alertmanager", FIRING)["alerts"][0]["fingerprint"]


def test_no_character_of_a_condition_is_markup_in_slack() -> None:
    link = LINK.replace("&", "&amp;")
    assert body("slack", RESOLVED) == {
        "text": "*RESOLVED: payment timeouts*\n"
        "7 dead letters of the last 10m. There were more than 1,000 from 2027-01-15 08:00:00 UTC to "
        "2027-01-15 08:10:00 UTC\n"
        f"`Conditions: group=pay&amp;co error=&lt;*Time'out*&gt;`\n<{link}|Open in the console>"
    }


def test_teams_gets_a_card_without_markup() -> None:
    sent = body("teams", FIRING)
    (attachment,) = sent["attachments"]
    assert (sent["type"], attachment["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    runs = [block["inlines"][0] for block in attachment["content"]["body"]]
    assert {run["type"] for run in runs} == {"TextRun"}
    assert runs[0]["text"] == "FIRING: payment timeouts"
    assert runs[2]["text"] == "Conditions: group=pay&co error=<*Time`out*>"
    assert attachment["content"]["actions"][0]["url"] == LINK


def test_the_link_has_the_conditions_of_the_rule() -> None:
    pairs = parse_qsl(urlsplit(body("alertmanager", FIRING)["alerts"][0]["generatorURL"]).query)
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert parse_filter([value for name, value in pairs if name == "where"], now) == parse_filter(RULE.filter, now)


@pytest.mark.parametrize("form", WebhookForm)
def test_without_a_console_there_is_no_link(form: WebhookForm) -> None:
    assert "dead-letters?" not in str(body(form, FIRING, console=""))


def test_counting_ends_at_a_limit_and_the_message_says_so() -> None:
    assert notice_of(RULE, Message(0.0, None, MOST), "").summary.startswith("10,000 or more dead letters")
    large = RULE.model_copy(update={"above": 50_000})
    assert notice_of(large, Message(0.0, None, 50_001), "").summary.startswith("50,001 or more dead letters")


@pytest.mark.parametrize("message", [FIRING, RESOLVED])
def test_rules_that_are_not_evaluated_are_an_alert_of_their_own(message: Message) -> None:
    notice = notice_of(TROUBLE, message, CONSOLE)
    assert "evaluate" in notice.summary and "dead letter" not in notice.summary
    assert notice.link == ""


BODY = {"text": "7 dead letters"}
SECRET = "/services/T0/B0/a-secret"


@pytest.fixture(autouse=True)
def without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def post_to(answer: Answer, limit: float = 10) -> tuple[Undelivered | None, list[Call]]:
    """Post to a receiver that answers so, and return what it got."""
    with HttpService(lambda _: answer) as receiver:
        return post(SecretStr(receiver.address + SECRET), BODY, limit), receiver.calls


@pytest.mark.parametrize("status", [200, 202, 204])
def test_a_receiver_takes_a_message_as_json(status: int) -> None:
    found, (call,) = post_to(Answer(status))
    assert (found, call.path, call.json()) == (None, SECRET, BODY)
    assert call.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("status", [400, 404, 429, 500, 503])
def test_a_receiver_that_refuses_has_not_taken_it(status: int) -> None:
    found, _ = post_to(Answer(status))
    assert found == (f"127.0.0.1 answered with status {status}", True)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_body_follows_a_redirection(status: int) -> None:
    found, calls = post_to(Answer(status, location="/elsewhere"))
    assert found is not None and "alerts.webhook.url" in found.reason
    assert [call.path for call in calls] == [SECRET]


def test_a_receiver_that_hangs_is_left_after_the_limit() -> None:
    found, _ = post_to(Answer(held_back=True), 0.2)
    assert found == ("127.0.0.1 didn't answer within 0.2 s", False)


def test_a_receiver_that_is_away_is_named_without_its_secret() -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))  # and not listening
        found = post(SecretStr(f"http://{LOOPBACK}:{taken.getsockname()[1]}{SECRET}"), BODY, 10)
    assert found is not None and not found.answered
    assert found.reason == "127.0.0.1 can't be reached (ClientConnectorError)"
