"""What an expired record becomes: a dead letter, a redelivery, or unsendable; and topics that take little or refuse."""

from __future__ import annotations

import os
from typing import Any

import pytest

from sweeper.export import fence
from sweeper.export_decision import Obstacle
from sweeper.result import PartitionResult, RowOutcome, Skip
from sweeper.sweep_task import skip_of
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Scenario, ids
from wait_registry.errors import PermanentError
from wait_registry.records.consumed import consumed
from wait_registry.records.dead_letter import decode_dead_letter
from wait_registry.records.original import PartialOriginal, Source
from wait_registry.records.tombstone import Outcome, decode_outcome
from wait_registry.records.topics import redelivery_topic

FIRST_DELIVERY = "019fc448-d29b-8abc-9def-0123456789ab"


def unsendable(result: PartitionResult) -> list[tuple[str, Obstacle]]:
    """Return wait ID and obstacle of each unsendable row."""
    return [(row.wait_id, row.obstacle) for row in result.named]


def test_a_redelivery_goes_to_its_groups_own_topic_with_the_next_delivery(at: Scenario) -> None:
    topic = redelivery_topic(at.settings.processor.topics[0], at.settings.processor.group)
    headers = (("a", b"1"), ("a", None))
    (registered,) = at.due([at.wait_record(7, expiry_policy="redeliver", delivery=2, headers=headers)])
    result = at.sweep()
    assert result.counts == {"redelivered": 1}
    (record,) = at.topics.read(topic)
    processor = at.settings.processor
    again = consumed(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp_ms,
        "create",
        record.key,
        record.value,
        record.headers,
        processor.group,
        processor.topics[0],
    )
    assert again.original == registered.record.original
    assert again.delivery == 3
    assert again.source is not None
    outcomes = [decode_outcome(stone.headers) for stone in at.read_wait() if stone.value is None]
    assert outcomes == [Outcome.REDELIVERED]
    assert at.dead_letters() == []


def test_redelivery_to_the_origin_goes_to_its_very_partition(at: Scenario) -> None:
    at.due([at.wait_record(n, expiry_policy="redeliver", redeliver_to="origin", partition=2) for n in range(5)])
    assert at.sweep().counts[RowOutcome.REDELIVERED] == 5
    records = at.topics.read(at.settings.processor.topics[0])
    assert [record.partition for record in records] == [2] * 5


@pytest.mark.guarantee("P1.27")
def test_dead_letters_carry_the_key_of_the_first_delivery(at: Scenario) -> None:
    later: dict[str, Any] = {
        "delivery": 2,
        "idempotency_key": FIRST_DELIVERY,
        "source": Source("orders.billing.retry.10s", 0, 7),
    }
    first, retried = at.due([at.wait_record(1), at.wait_record(2, **later)])
    assert at.sweep().counts == {"exported": 2}
    lineages = [lineage for letter in at.dead_letters() if (lineage := decode_dead_letter(letter.headers).lineage)]
    found = {lineage.wait_id: (lineage.idempotency_key, lineage.source) for lineage in lineages}
    assert found == {first.wait_id: (None, None), retried.wait_id: (FIRST_DELIVERY, later["source"])}


@pytest.mark.guarantee("P4.9")
def test_a_row_too_large_for_its_dead_letter_topic_is_unsendable(at: Scenario) -> None:
    large, small = at.register([at.wait_record(1, value=b"x" * 40_000), at.wait_record(2)])
    at.topics.configure(at.settings.dead_letter.topic, "max.message.bytes", "40000")
    at.show()
    result = at.sweep()
    assert (result.counts, result.skip) == ({"exported": 1, "unsendable": 1}, None)
    assert unsendable(result) == [(large.wait_id, Obstacle.TOO_LARGE)]
    assert "--add-config max.message.bytes=" in result.named[0].reason
    assert at.dead_lettered_ids() == [small.wait_id]
    needed = result.named[0].reason.rpartition("=")[2]
    at.topics.configure(at.settings.dead_letter.topic, "max.message.bytes", needed)
    assert at.sweep().counts[RowOutcome.EXPORTED] == 1, "the command of the message fixes it"
    assert len(at.dead_letters()) == 2


def test_a_missing_dead_letter_topic_is_not_created(at: Scenario) -> None:
    missing = f"{at.settings.dead_letter.topic}.missing"
    orphan, other = at.due([at.wait_record(1, dead_letter_topic=missing), at.wait_record(2)])
    result = at.sweep()
    assert result.counts == {"exported": 1, "unsendable": 1}
    assert unsendable(result) == [(orphan.wait_id, Obstacle.NO_TOPIC)]
    assert at.dead_lettered_ids() == [other.wait_id]
    assert missing not in at.topics.admin.list_topics(timeout=15).topics


def test_a_registration_in_the_legacy_format_takes_the_sweepers_defaults(at: Scenario) -> None:
    original = PartialOriginal("orders", 1, None, None, None, b"k", b"v", (("a", b"b"),))
    names = ("group", "instance", "delivery", "dead_letter_topic", "expiry_policy", "max_deliveries")
    unknown: dict[str, Any] = dict.fromkeys(names)
    at.due([at.wait_record(original=original, **unknown)])
    assert at.sweep(default_expiry_policy="redeliver").counts == {"exported": 1}, "no group, no redelivery topic"
    (letter,) = at.dead_letters()
    decoded = decode_dead_letter(letter.headers)
    assert (letter.key, letter.value, decoded.headers) == (b"k", b"v", (("a", b"b"),))
    assert decoded.lineage is not None
    assert decoded.lineage.original_offset is None


def test_an_unreadable_row_is_unsendable(at: Scenario) -> None:
    broken, odd, good = at.due(3)
    with at.database.connect(at.settings) as connection:
        update = "update wait set original_headers = %s where wait_expiration_uuid = %s"
        connection.execute(update, ('[["a", "not base64!"]]', broken.wait_id))
        connection.execute(update, ('[[{"base64": "YQBi"}, null]]', odd.wait_id))
    result = at.sweep()
    assert result.counts == {"exported": 1, "unsendable": 2}
    assert {row.obstacle for row in result.named} == {Obstacle.UNREADABLE}
    assert at.dead_lettered_ids() == [good.wait_id]


def test_a_row_without_a_key_for_a_compacted_topic_is_unsendable(at: Scenario) -> None:
    at.topics.configure(at.settings.dead_letter.topic, "cleanup.policy", "compact")
    bare, keyed = at.due([at.wait_record(1, key=None), at.wait_record(2)])
    result = at.sweep()
    assert (result.counts, result.skip) == ({"exported": 1, "unsendable": 1}, None)
    assert unsendable(result) == [(bare.wait_id, Obstacle.NO_KEY)]
    assert at.dead_lettered_ids() == [keyed.wait_id]


# Far more in one transaction than any of these topics takes in one batch, also when it is compressed.
ROWS = 1_000


@pytest.mark.guarantee("P4.9")
@pytest.mark.parametrize("limit", ["10000", "5000"])  # the second was set after the start
def test_a_wait_topic_with_a_small_limit_takes_many_tombstones(limit: str, scenario: ScenarioFactory) -> None:
    at = scenario({"wait.max_message_bytes": 10_000})
    # They came few at a time; here all come at once.
    at.topics.configure(at.settings.wait.topic, "max.message.bytes", "1000000")
    registered = at.register([at.wait_record(number) for number in range(ROWS)])
    at.topics.configure(at.settings.wait.topic, "max.message.bytes", limit)
    at.show()
    result = at.sweep()
    assert (result.skip, result.reason, result.counts) == (None, "", {"exported": ROWS})
    assert at.dead_lettered_ids() == ids(registered)


@pytest.mark.guarantee("P4.9")
def test_a_dead_letter_topic_with_a_small_limit_takes_many_rows(at: Scenario) -> None:
    foreign = f"{at.settings.dead_letter.topic}.foreign"
    at.topics.create(foreign, 1, max__message__bytes="4000")
    registered = at.register(
        [at.wait_record(number, dead_letter_topic=foreign) for number in range(0, ROWS, 2)]
        + [at.wait_record(number) for number in range(1, ROWS, 2)]
    )
    at.show()
    result = at.sweep()
    assert (result.skip, result.reason, result.counts) == (None, "", {"exported": ROWS})
    there = sorted(record.text("WAIT_EXPIRATION_UUID") for record in at.topics.read(foreign))
    assert sorted([*there, *at.dead_lettered_ids()]) == ids(registered)
    assert len(there) == ROWS // 2


@pytest.mark.fault("F77")
def test_the_error_names_the_topic_and_the_next_sweep_exports_the_others(at: Scenario) -> None:
    first, large, small = at.due([at.wait_record(1), at.wait_record(2, value=os.urandom(40_000)), at.wait_record(3)])
    with at.export(chunk_rows=1) as task:
        chunks = fence(task).snapshot().read_tail().chunks()
        next(chunks).export()  # the topic has been looked up
        at.topics.configure(at.settings.dead_letter.topic, "max.message.bytes", "20000")
        with pytest.raises(
            PermanentError, match=f"exporting 1 rows of .* to {at.settings.dead_letter.topic}"
        ) as refused:
            next(chunks).export()
    assert skip_of(refused.value, 0) is Skip.FAILED, "its partition is left; nothing ends the process"
    assert at.dead_lettered_ids() == [first.wait_id]
    again = at.sweep()
    assert (again.counts, again.skip) == ({"superseded": 1, "exported": 1, "unsendable": 1}, None)
    assert unsendable(again) == [(large.wait_id, Obstacle.TOO_LARGE)]
    assert at.dead_lettered_ids() == sorted([first.wait_id, small.wait_id])
