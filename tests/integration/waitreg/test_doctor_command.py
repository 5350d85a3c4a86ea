"""`waitreg doctor`: silent about nothing, right about what is broken, and it changes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.command import Ended, run_waitreg
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.settings.tree import Settings


def _standings(ended: Ended) -> dict[str, str]:
    """Return the severity of each subject in doctor's report, the worst if it has several."""
    worst = ["ok", "skipped", "warning", "error"]
    found: dict[str, str] = {}
    for line in ended.output.splitlines():
        standing, _, rest = line.partition("  ")
        if standing.strip() in worst and ": " in rest:
            subject = rest.strip().partition(": ")[0]
            found[subject] = max(found.get(subject, "ok"), standing.strip(), key=worst.index)
    return found


def _broken(ended: Ended) -> list[str]:
    return [subject for subject, standing in _standings(ended).items() if standing == "error"]


def _sound(prepared: SettingsFactory, **overrides: object) -> Settings:
    given = {name.replace("__", "."): value for name, value in overrides.items()}
    return prepared({"processor.handler": "shop:handle", **given})


def test_doctor_finds_no_error(prepared: SettingsFactory, here: Path) -> None:
    settings = _sound(prepared)
    ended = run_waitreg(here, "doctor", settings=settings)
    assert ended.code == 0, ended.output + ended.errors
    assert _broken(ended) == []
    # One broker keeps one replica of the wait, dead letter, operations and redelivery topic.
    assert ended.output.splitlines()[-1] == ("start-up checks passed for processor, sink, sweeper, 4 warnings")
    assert {
        "settings of the processor",
        "settings of the sink",
        "settings of the sweeper",
        "handler",
        "Python and Kafka client",
        "Java",
        "Spark",
        "jars of Spark's Kafka source",
        "telemetry port",
        "disk for Spark's scratch",
        "Kafka",
        "clock of the broker",
        *(f"permissions in Kafka ({service})" for service in ("processor", "sink", "sweeper")),
        "transactional ids of the sweeper",
        f"topic {settings.wait.topic}",
        f"topic {settings.dead_letter.topic}",
        f"topic {settings.processor.topics[0]}",
        "Postgres",
        "sessions in Postgres",
        "schema",
        *(f"permissions in Postgres ({service})" for service in ("sink", "sweeper")),
        "clock of Postgres",
        "position of the tables",
        "freshness of the tables",
        "expired registrations",
        "last sweep",
        "offsets of the group",
    } <= set(_standings(ended))


def test_json_has_stable_names_and_the_same_exit_code(prepared: SettingsFactory, topics: Topics, here: Path) -> None:
    settings = _sound(prepared)
    (here / "shop.py").write_text("print('loud module')\nasync def handle(record):\n    return None\n")
    topics.delete(settings.dead_letter.topic)
    ended = run_waitreg(here, "doctor", "--json", settings=settings)
    assert ended.code == 2
    report = json.loads(ended.output)
    assert list(report) == ["version", "services", "checks", "errors", "warnings"]
    assert (report["services"], report["errors"]) == (["processor", "sink", "sweeper"], 1)
    assert {tuple(check) for check in report["checks"]} == {("id", "subject", "severity", "message", "fix")}
    found = {check["id"]: check for check in report["checks"]}
    assert found["topic.dead_letter.missing"]["severity"] == "error"
    assert found["topic.dead_letter.missing"]["fix"] == "`waitreg topics create`"
    assert found["group.offsets"]["severity"] == "ok"
    assert "loud module" in ended.errors
    assert f"error     topic {settings.dead_letter.topic}: " in ended.errors, "the lines for people"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("--set", "processor.grup=x"), "processor.group"),
        (("--config", "nowhere.toml"), "nowhere.toml"),
        (("sinc",), "'sinc' is no service"),
    ],
)
def test_wrong_usage_ends_with_2_in_json_and_without(here: Path, arguments: tuple[str, ...], named: str) -> None:
    plain, as_json = run_waitreg(here, "doctor", *arguments), run_waitreg(here, "doctor", "--json", *arguments)
    assert (plain.code, as_json.code) == (2, 2)
    assert named in plain.errors
    report = json.loads(as_json.output)
    [check] = report["checks"]
    assert (check["id"], check["severity"], report["errors"]) == ("settings", "error", 1)
    assert named in check["message"] and check["fix"]


def test_an_unreachable_kafka_is_one_error_and_its_topics_are_skipped(prepared: SettingsFactory, here: Path) -> None:
    settings = _sound(prepared)
    away = {"WAITREG_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1", "WAITREG_KAFKA__REQUEST_TIMEOUT_S": "3"}
    ended = run_waitreg(here, "doctor", settings=settings, variables=away)
    assert ended.code == 1, "an outage passes, as for every other command"
    assert _broken(ended) == ["Kafka"]
    assert "Kafka: still checking" in ended.errors
    assert _standings(ended)["topics"] == "skipped"
    assert _standings(ended)["schema"] == "ok"


def test_offsets_fit_until_the_wait_topic_is_recreated(prepared: SettingsFactory, topics: Topics, here: Path) -> None:
    settings = _sound(prepared)
    topics.produce(settings.processor.topics[0], [Outgoing(b"order", key=b"%d" % number) for number in range(30)])
    assert run_waitreg(here, "processor", "--once", settings=settings).code == 0
    ended = run_waitreg(here, "doctor", "processor", settings=settings)
    assert ended.code == 0, ended.output
    assert f"3 of 3 partitions of {settings.processor.topics[0]} have one, 0 offsets to the end" in ended.output
    topics.delete(settings.wait.topic)
    wait_until(lambda: settings.wait.topic not in topics.admin.list_topics(timeout=15).topics, what="the deletion")
    topics.create_own(settings)
    ended = run_waitreg(here, "doctor", "processor", settings=settings)
    assert ended.code == 2
    assert _broken(ended) == ["offsets of the group"]
    assert "was recreated" in ended.output
