"""P1: rows of a dead letter topic that is gone are all that is left of it: no letter of the new one replaces them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

import pytest

from sink.progress import read_progress
from sink.read.start_positions import dead_letter_start
from tests.conftest import SettingsFactory
from tests.integration.sink.applying import PARTITIONS, HandFed, now_ms
from tests.integration.sink.wait_topic import new_id
from tests.support.database import Database
from tests.unit.sink.batches import Row
from wait_registry.kafka.clients import admin
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import Lineage
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers

ORIGINAL = Original("orders", 0, 7, 1_700_000_000_000, "create", b"k", b"body", ())


def letter(topic: str, offset: int, body: bytes, wait_id: str = "") -> Row:
    lineage = Lineage.of(
        ORIGINAL, wait_id=wait_id or new_id(), wait_partition=0, wait_offset=1, group="g", instance="i", delivery=1
    )
    headers = dead_letter_headers((), lineage, Failure(Reason.EXPIRED, None, None, None, now_ms()))
    return Row(b"k", body, 0, offset, now_ms(), tuple(headers), topic)


@pytest.mark.guarantee("P1.13")
def test_its_letters_are_shown_beside_those_of_the_old_one(prepared: SettingsFactory, database: Database) -> None:
    settings = prepared({"dead_letter.partitions": PARTITIONS})
    topic, late = settings.dead_letter.topic, new_id()
    with closing(HandFed(settings, topic, dead_letters=True)) as old:
        old.feed([letter(topic, 0, b"old 0", late), letter(topic, 1, b"old 1"), letter(topic, 3, b"old 3")])
        recorded, _ = read_progress(old.connection, topic)
        assert recorded is not None
        start = dead_letter_start(old.connection, admin(settings.kafka), topic)
        assert {position.next_offset for position in start.positions.values()} == {0}

    def shown() -> Mapping[tuple[str, int], bytes]:
        rows = database.rows(settings, 'select topic, "offset", body from dead_letter')
        return {(topic, offset): body for topic, offset, body in rows}

    kept = f"{topic}@{recorded.topic_id}"
    of_the_old = {(kept, 0): b"old 0", (kept, 1): b"old 1", (kept, 3): b"old 3"}
    with closing(HandFed(settings, topic, dead_letters=True)) as new:
        new.feed([letter(topic, 0, b"new 0"), letter(topic, 1, b"new 1")])
        assert shown() == {**of_the_old, (topic, 0): b"new 0", (topic, 1): b"new 1"}
        dead_letter_start(new.connection, admin(settings.kafka), topic)
        assert shown() == {**of_the_old, (topic, 0): b"new 0", (topic, 1): b"new 1"}, "it is the same topic now"

    with closing(HandFed(settings)) as waits:
        waits.feed([Row(late.encode(), None, 0, 2, now_ms(), tuple(tombstone_headers(Outcome.DONE)))])
    marked = database.rows(settings, 'select topic, "offset" from dead_letter where finished_late')
    assert marked == [(kept, 0)], "what is finished late is marked there too"
