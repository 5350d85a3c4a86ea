"""What groups count on is asked for within a bound, and never about what no cluster can have."""

from __future__ import annotations

import logging

import pytest

from sweeper.group_rules import ASK_EVERY_S, GroupRules
from sweeper.partition_result import MAX_GROUP_LENGTH, MAX_PARTITION, Source
from wait_registry.settings.root import Settings

NOBODY = "127.0.0.1:1"
SOURCES = frozenset({Source("billing", "orders", 0), Source("shipping", "parcels", 1)})


class SteadyClock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return int(self.now_s * 1000)


def asked(caplog: pytest.LogCaptureFixture) -> list[str]:
    said = [record.getMessage() for record in caplog.records if "can't be compared" in record.getMessage()]
    caplog.clear()
    assert all("DESCRIBE" in text for text in said)
    return [text.split()[4] for text in said]


@pytest.mark.timeout(60)
def test_one_group_without_an_answer_ends_the_questions_of_its_sweep_whatever_requests_may_take(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "sweeper.group_rules")
    clock = SteadyClock()
    patient = Settings.model_validate({"kafka": {"bootstrap_servers": NOBODY, "request_timeout_s": 300}})
    rules = GroupRules(patient, clock)
    for groups in (["billing"], ["shipping"], []):
        rules.ask(SOURCES)
        assert asked(caplog) == groups
    clock.now_s = ASK_EVERY_S
    rules.ask(SOURCES)
    assert asked(caplog) == ["billing"]
    assert rules.warnings(SOURCES) == ()


@pytest.mark.parametrize(
    ("group", "topic", "partition"),
    [
        (None, "orders", 0),
        ("", "orders", 0),
        ("g" * 40_000, "orders", 0),
        ("bill\0ing", "orders", 0),
        ("billing", "", 0),
        ("billing", "t" * (MAX_GROUP_LENGTH + 1), 0),
        ("billing", "all orders", 0),
        ("billing", "orders\n", 0),
        ("billing", "orders", None),
        ("billing", "orders", -1),
        ("billing", "orders", MAX_PARTITION + 1),
    ],
)
def test_what_no_cluster_can_have_is_no_source(group: str | None, topic: str, partition: int | None) -> None:
    assert Source.of(group, topic, partition) is None


def test_a_source_names_group_topic_and_partition() -> None:
    assert Source.of("billing", "orders", 3) == Source("billing", "orders", 3)
