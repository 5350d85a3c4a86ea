"""Alerts from the tables to a real receiver: what fires, what is sent again, and who sends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from sweeper.alerts.watch import LONGEST_PAUSE_S, AlertWatch
from tests.integration.sweeper.conftest import Tables
from tests.integration.sweeper.test_backlog import dead_letter
from tests.support.http_service import Answer, Call, HttpService
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.open_connections import OpenConnections
from wait_registry.settings.alerts import NOT_EVALUATED, AlertsSettings
from wait_registry.settings.tree import Settings
from wait_registry.telemetry import metrics as m
from wait_registry.telemetry.exposition import MetricsRegistry

MANY = {"name": "many", "filter": ["group=payments", "state=open"], "above": 1}
FAST = {"name": "fast", "filter": ["error=Time*"], "window": "10m", "for": "1m", "every": "1h"}
PROGRESS = """
insert into sink_progress values ('dlq', 'id', 0, 7, now() - make_interval(secs => %s), now())
on conflict (topic, partition) do update set position_time = excluded.position_time, seen_at = excluded.seen_at
"""


class Hook:
    """A receiver, and the clock of the sweepers that send to it."""

    def __init__(self) -> None:
        self.answer = Answer()
        self.now_s = datetime.now(UTC).timestamp()
        self.service = HttpService(self._answer)

    def _answer(self, _: Call) -> Answer:
        return self.answer

    def taken(self) -> list[tuple[str, str]]:
        """Return name and status of what was sent since the last time, and forget it."""
        alerts = [call.json()["alerts"][0] for call in self.service.calls]
        self.service.calls.clear()
        return [(alert["labels"]["alertname"], alert["status"]) for alert in alerts]


Start = Callable[..., AlertWatch]


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Hook()
    with made.service:
        yield made


@pytest.fixture
def start(settings: Settings, hook: Hook) -> Iterator[Start]:
    """Start the alerts of a sweeper, whose clock is the receiver's."""
    opened: list[AlertWatch] = []

    def make(*rules: Any, connections: OpenConnections | None = None, timeout_s: float = 10) -> AlertWatch:
        webhook = {"url": f"{hook.service.address}/hook", "timeout_s": timeout_s}
        alerts = AlertsSettings.model_validate({"rule": rules, "webhook": webhook})
        own = settings.model_copy(update={"alerts": alerts})

        def clock() -> float:
            return hook.now_s

        opened.append(AlertWatch(own, connections or OpenConnections(), clock, clock))
        return opened[-1]

    yield make
    for watch in opened:
        watch.close()


def sample(watch: AlertWatch, name: str, **labels: str) -> float | None:
    registry = MetricsRegistry()
    watch.expose(registry)
    return registry.prometheus.get_sample_value(name, labels)


def take_over(watch: AlertWatch) -> None:
    """Evaluate until this one does it: Postgres ends the closed session of the other in its own time."""

    def evaluates() -> bool:
        watch.run_once()
        return bool(sample(watch, m.ALERTS_EVALUATED.name))

    wait_until(evaluates, what="the lock of the sweeper that was closed")


def test_an_alert_fires_ends_and_is_repeated(tables: Tables, hook: Hook, start: Start) -> None:
    watch = start(MANY, FAST)
    dead_letter(tables, "9 days", "ValueError")
    watch.run_once()
    assert hook.taken() == []
    dead_letter(tables, "1 minute", "Timeout")
    dead_letter(tables, "1 minute", "Timeout", group="other")
    watch.run_once()
    assert hook.taken() == [("many", "firing")]
    assert sample(watch, m.ALERTS_FIRING.name, rule="many") == 1
    assert sample(watch, m.ALERTS_FIRING.name, rule="fast") == 0, "it is pending"
    hook.now_s += 60
    watch.run_once()
    assert hook.taken() == [("fast", "firing")]
    hook.now_s += 300
    watch.run_once()
    assert hook.taken() == []
    tables.execute("update dead_letter set state = 'archived'")
    hook.now_s += 60
    watch.run_once()
    assert hook.taken() == [("many", "resolved")], "the other one counts all states"
    tables.execute("update dead_letter set error_class = 'Other'")
    watch.run_once()
    assert hook.taken() == [("fast", "resolved")]
    assert sample(watch, m.ALERTS_EVALUATED.name) == hook.now_s
    assert sample(watch, m.ALERTS_DELIVERIES.name, result="delivered") == 4


def test_a_message_has_the_count_and_nothing_of_a_record(tables: Tables, hook: Hook, start: Start) -> None:
    dead_letter(tables, "1 minute", "Timeout")
    tables.execute("update dead_letter set key = 'customer-7', body = 'iban', error_message = 'no account'")
    start({"name": "any"}).run_once()
    (call,) = hook.service.calls
    assert "1 dead letter" in call.json()["alerts"][0]["annotations"]["summary"]
    assert not any(text in call.body for text in (b"customer", b"iban", b"no account", b"Timeout"))


def test_a_message_is_tried_until_the_receiver_takes_it(tables: Tables, hook: Hook, start: Start) -> None:
    dead_letter(tables, "1 minute", "Timeout")
    watch = start({"name": "any"})
    hook.answer = Answer(503)
    watch.run_once()
    watch.run_once()
    assert len(hook.taken()) == 1, "it waits before it tries again"
    for _ in range(6):
        hook.now_s += LONGEST_PAUSE_S
        watch.run_once()
    assert len(hook.taken()) == 6
    assert sample(watch, m.ALERTS_DELIVERIES.name, result="failed") == 7
    hook.answer = Answer()
    hook.now_s += LONGEST_PAUSE_S
    watch.run_once()
    watch.run_once()
    assert hook.taken() == [("any", "firing")]
    assert sample(watch, m.ALERTS_DELIVERIES.name, result="delivered") == 1


def test_a_message_that_is_refused_keeps_no_other_from_being_sent(tables: Tables, hook: Hook, start: Start) -> None:
    dead_letter(tables, "1 minute", "Timeout")
    hook.answer = Answer(400)
    start({"name": "a"}, {"name": "b"}).run_once()
    assert hook.taken() == [("a", "firing"), ("b", "firing")]


def test_a_receiver_that_hangs_is_asked_once_per_evaluation(tables: Tables, hook: Hook, start: Start) -> None:
    dead_letter(tables, "1 minute", "Timeout")
    hook.answer = Answer(held_back=True)
    watch = start({"name": "a"}, {"name": "b"}, timeout_s=0.3)
    watch.run_once()
    assert hook.taken() == [("a", "firing")]
    assert sample(watch, m.ALERTS_DELIVERIES.name, result="failed") == 1


def test_of_two_sweepers_one_sends_until_it_ends(tables: Tables, hook: Hook, start: Start) -> None:
    dead_letter(tables, "1 minute", "Timeout")
    first, second = start({"name": "any"}), start({"name": "any"})
    first.run_once()
    second.run_once()
    assert hook.taken() == [("any", "firing")]
    assert sample(second, m.ALERTS_EVALUATED.name) == 0
    first.close()
    take_over(second)
    assert hook.taken() == [("any", "firing")], "after a restart it fires again"


def test_that_rules_are_not_evaluated_is_reported(settings: Settings, hook: Hook, start: Start) -> None:
    connections = OpenConnections()
    watch = start({"name": "any"}, connections=connections)
    watch.run_once()
    connections.give_up()
    for _ in range(2):
        hook.now_s += 300
        watch.run_once()
    assert hook.taken() == [(NOT_EVALUATED, "firing")]
    assert sample(watch, m.ALERTS_EVALUATED.name) == hook.now_s - 600


def test_a_sweeper_that_was_replaced_reports_the_end_of_its_trouble(tables: Tables, hook: Hook, start: Start) -> None:
    first, second = start({"name": "any"}), start({"name": "any"})
    first.run_once()
    tables.execute(PROGRESS.encode(), (3_600,))
    for _ in range(2):
        first.run_once()
        hook.now_s += 300
    first.run_once()
    assert hook.taken() == [(NOT_EVALUATED, "firing")]
    first.close()
    take_over(second)
    first.run_once()
    assert hook.taken() == [(NOT_EVALUATED, "resolved")]


def test_old_tables_are_reported_until_read_again(tables: Tables, hook: Hook, start: Start) -> None:
    watch = start({"name": "any"})
    tables.execute(
        "insert into sink_progress values ('gone', 'id', 0, 7, now() - interval '9 d', now() - interval '9 d')"
    )
    for age_s in (5, 3_600, 3_600, 3_600):
        tables.execute(PROGRESS.encode(), (age_s,))
        hook.now_s += 200
        watch.run_once()
    assert hook.taken() == [(NOT_EVALUATED, "firing")]
    tables.execute(PROGRESS.encode(), (5,))
    watch.run_once()
    assert hook.taken() == [(NOT_EVALUATED, "resolved")]


@pytest.mark.parametrize(
    ("condition", "message"), [("eror=x", "did you mean error"), ("since=2h", "set 'window' instead")]
)
def test_a_condition_that_is_none_is_refused_at_the_start(start: Start, condition: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"the rule 'a' of alerts.rule: .*{message}"):
        start({"name": "a", "filter": [condition]})
