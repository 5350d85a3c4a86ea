"""What is decided for a due row, and which records may be sent together, without any broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.due import DueRow
from sweeper.export_decision import Obstacle, Outgoing, Unsendable, outgoing
from wait_registry.kafka.targets import Target, record_size
from wait_registry.records.dead_letter import Reason, decode_dead_letter
from wait_registry.records.lineage import split_lineage
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome
from wait_registry.records.wait_record import WaitRecord
from wait_registry.settings.sweeper import SweeperSettings
from wait_registry.settings.tree import Settings

WAIT_ID = "018bcfe5-6800-8000-8000-000000000001"
NOW_MS = 1_800_000_000_000


def with_defaults(**changes: Any) -> Settings:
    defaults = {"default_dead_letter_topic": "default.dlq", "default_max_deliveries": 3, **changes}
    return Settings(sweeper=SweeperSettings.model_validate(defaults))


SETTINGS = with_defaults()


def row(**changes: Any) -> DueRow:
    original = Original("orders", 3, 17, 1_700_000_000_000, "create", b"k", b"v", (("a", b"b"),))
    for name in [name for name in changes if name in Original._fields]:
        original = original._replace(**{name: changes.pop(name)})
    record = WaitRecord(original, WAIT_ID, 1_799_999_999_000, "billing", "host-1", 1, "orders.dlq", "dlq", 3)
    return DueRow(record._replace(**changes), 5, 42)


def anything(topic: str) -> Target:
    return Target(topic, 8, 1_000_000)


def decided(due: DueRow, settings: Settings = SETTINGS) -> Outgoing:
    answer = outgoing(due, settings, anything, NOW_MS)
    assert isinstance(answer, Outgoing)
    return answer


def test_the_dead_letter_names_registration_and_reason() -> None:
    letter = decided(row())
    assert (letter.topic, letter.partition, letter.outcome) == ("orders.dlq", None, Outcome.EXPIRED)
    assert (letter.wait_id, letter.wait_partition) == (WAIT_ID, 5)
    failure = decode_dead_letter(letter.headers).failure
    assert failure is not None
    assert (failure.reason, failure.error_class, failure.time_ms) == (Reason.EXPIRED, "WaitExpired", NOW_MS)
    assert failure.error_message == (
        "no outcome by 2027-01-15T07:59:59.000Z; registered by instance host-1 of group billing, delivery 1"
    )


@pytest.mark.guarantee("P4.7")
@given(st.one_of(st.none(), st.sampled_from(["dlq", "redeliver"])), st.one_of(st.none(), st.integers(1, 5)),
       st.one_of(st.none(), st.integers(1, 5)), st.booleans(), st.sampled_from([None, "", "billing"]),
       st.sampled_from(["orders", "orders.billing.redeliver", "orders.billing.retry.1m"]))  # fmt: skip
def test_redelivery_ends_at_the_last_delivery(
    policy: Any, delivery: int | None, limit: int | None, by_default: bool, group: str | None, topic: str
) -> None:
    due = row(topic=topic, expiry_policy=policy, delivery=delivery, max_deliveries=limit, group=group)
    answer = decided(due, with_defaults(default_expiry_policy="redeliver" if by_default else "dlq"))
    wanted = by_default if policy is None else policy == "redeliver"
    again = wanted and bool(group) and (delivery or 1) < (limit or 3)
    assert answer.outcome is (Outcome.REDELIVERED if again else Outcome.EXPIRED)
    if again:
        lineage = split_lineage(answer.headers)[1]
        assert answer.topic == "orders.billing.redeliver"
        assert lineage is not None
        assert lineage.delivery == (delivery or 1) + 1


@pytest.mark.parametrize("policy", ["dlq", "redeliver"])
@pytest.mark.parametrize("key", [None, WAIT_ID, "018bcfe5-6800-8000-8000-000000000002"])
def test_what_is_published_carries_the_key_of_the_first_delivery(policy: Any, key: str | None) -> None:
    lineage = split_lineage(decided(row(expiry_policy=policy, idempotency_key=key)).headers)[1]
    assert lineage is not None
    assert lineage.idempotency_key == (None if key == WAIT_ID else key), "no header repeats the wait ID"


def test_redelivery_to_the_origin_keeps_the_partition() -> None:
    again = decided(row(expiry_policy="redeliver", redeliver_to="origin"))
    assert (again.topic, again.partition) == ("orders", 3)


def test_no_redelivery_replaces_a_newer_record_of_a_compacted_input() -> None:
    targets = lambda topic: replace(anything(topic), compacted=topic == "orders")  # noqa: E731
    answer = outgoing(row(expiry_policy="redeliver", redeliver_to="origin"), SETTINGS, targets, NOW_MS)
    assert isinstance(answer, Outgoing)
    assert (answer.topic, answer.outcome) == ("orders.dlq", Outcome.EXPIRED)


@pytest.mark.parametrize(
    ("template", "topic"), [("default.dlq", "default.dlq"), ("{topic}.{group}.dlq", "orders.billing.dlq")]
)
def test_a_registration_that_names_no_dead_letter_topic_takes_the_default(template: str, topic: str) -> None:
    assert decided(row(dead_letter_topic=None), with_defaults(default_dead_letter_topic=template)).topic == topic


@pytest.mark.parametrize("spare", [0, -1])
def test_a_dead_letter_is_unsendable_exactly_when_it_may_not_fit(spare: int) -> None:
    letter = decided(row())
    size = record_size(letter.key, letter.value, letter.headers)
    answer = outgoing(row(), SETTINGS, lambda topic: Target(topic, 8, size + spare), NOW_MS)
    if spare == 0:
        assert answer == letter
    else:
        assert isinstance(answer, Unsendable)
        assert (answer.obstacle, answer.wait_id, answer.topic, answer.partition, answer.offset) == (
            Obstacle.TOO_LARGE, WAIT_ID, "orders", 3, 17)  # fmt: skip


def test_what_does_not_fit_for_redelivery_is_dead_lettered() -> None:
    limits = {"orders.billing.redeliver": 100, "orders.dlq": 10_000}
    answer = outgoing(row(expiry_policy="redeliver"), SETTINGS, lambda topic: Target(topic, 1, limits[topic]), NOW_MS)
    assert isinstance(answer, Outgoing)
    assert (answer.topic, answer.outcome) == ("orders.dlq", Outcome.EXPIRED)


@pytest.mark.parametrize(
    ("changes", "defaults", "target", "obstacle", "reason"),
    [
        ({}, {}, {"partitions": 0, "problem": "orders.dlq is missing"}, Obstacle.NO_TOPIC, "orders.dlq is missing"),
        ({"expiry_policy": "redeliver", "redeliver_to": "origin"}, {}, {"partitions": 3}, Obstacle.NO_TOPIC,
         "orders has lost its partition 3"),
        ({"key": None}, {}, {"compacted": True}, Obstacle.NO_KEY, "cleanup.policy=delete"),
        ({"headers": (("a\0b", b""),)}, {}, {}, Obstacle.UNREADABLE, "NUL"),
        ({"headers": (("\ud800", b""),)}, {}, {}, Obstacle.UNREADABLE, "surrogate"),
        ({"dead_letter_topic": None, "group": "a b"}, {"default_dead_letter_topic": "{group}"}, {}, Obstacle.UNREADABLE,
         "a b"),
    ],
)  # fmt: skip
def test_a_row_that_no_topic_takes_is_unsendable(
    changes: dict[str, Any], defaults: dict[str, Any], target: dict[str, Any], obstacle: Obstacle, reason: str
) -> None:
    targets = lambda topic: replace(anything(topic), **target)  # noqa: E731
    answer = outgoing(row(**changes), with_defaults(**defaults), targets, NOW_MS)
    assert isinstance(answer, Unsendable)
    assert answer.obstacle is obstacle
    assert reason in answer.reason


def test_the_description_of_an_unsendable_row_is_bounded() -> None:
    settings = with_defaults(default_dead_letter_topic="{topic}.{group}")
    stays = outgoing(row(topic="x" * 100_000, group="g" * 100_000, dead_letter_topic=None), settings, anything, NOW_MS)
    assert isinstance(stays, Unsendable)
    assert stays.obstacle is Obstacle.UNREADABLE
    assert len(repr(stays)) < 4_000
