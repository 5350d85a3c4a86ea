"""R1 with Kafka Connect sinks: a redrive alongside their tables sends each delivery once."""

from __future__ import annotations

import pytest

from tests.integration.connect.sinking import SinkingFactory
from tests.integration.redrive.scenario import Scenario
from tests.integration.sink.conftest import StartSink, start_sink
from tests.integration.sink.wait_topic import tombstone, wait_record
from tests.support.waiting import wait_until
from wait_registry.records.operation import Mark, State

__all__ = ["start_sink"]

DEAD_LETTERS = 6


@pytest.mark.guarantee("R1.11")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("family", ["debezium"], indirect=True)
def test_a_redrive_sends_each_delivery_once(sinking: SinkingFactory, start_sink: StartSink) -> None:
    kept = sinking({"wait.partitions": 1, "sink.kind": "connect", "processor.expiry_policy": "redeliver"})
    at = Scenario(kept.settings, kept.topics, kept.database)
    waiting = at.lineage(0).wait_id
    at.dead_letters(DEAD_LETTERS)
    kept.log.write(wait_record(waiting, 0))
    waits, _ = kept.start(), kept.start("dead_letter.sink")
    own = at.settings.sink.model_copy(update={"connect_group": f"connect-{waits}"})
    at.settings = at.settings.model_copy(update={"sink": own})
    kept.wait_for_rows("the registration")
    count = "select count(*) from dead_letter"
    wait_until(lambda: at.rows(count) == [(DEAD_LETTERS,)], what="all dead letters")
    start_sink(at.settings).wait_ready()

    first, second = at.request(job="job-1", limit=3).job, at.request(job="job-2").job
    assert second.expected == {"still_waiting": 1, "redriven": DEAD_LETTERS - 1}
    assert at.execute(first).state is State.FINISHED
    kept.log.write(tombstone(waiting, 0))
    kept.wait_for_rows("no registration")
    assert at.execute(second).counts["still_waiting"] == 0

    sent = [mark.wait_id for mark in at.events() if isinstance(mark, Mark)]
    assert len(sent) == len(set(sent)) == len(at.sent()) == DEAD_LETTERS
    redriven = "select count(*) from dead_letter where state = 'redriven'"
    wait_until(lambda: at.rows(redriven) == [(DEAD_LETTERS,)], 240, "the states of all dead letters")
