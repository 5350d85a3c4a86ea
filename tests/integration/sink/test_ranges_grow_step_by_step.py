"""P7: what nobody has seen may be of any size, so a sink begins with few records and reads more step by step."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sink.read.ranges import GROWTH
from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sink.wait_topic import WaitTopic, new_id, wait_record
from tests.support.database import Database
from tests.support.topics import Topics

RECORD_STEPS = """
create table steps (read_to bigint not null);
create function record_step() returns trigger language plpgsql as $$
begin
    insert into steps select sum(next_offset) from sink_progress;
    return null;
end $$;
create trigger record_step after update on sink_progress for each statement execute function record_step();
"""


@pytest.mark.guarantee("P7.7")
def test_a_driver_that_a_large_batch_kills_has_come_further_before(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared({"sink.poll_interval_s": 0.1})
    start_sink(settings, once=True).wait_ended()  # writes its positions
    records = 10_000
    WaitTopic(topics, settings.wait.topic).write(*[wait_record(new_id(), number % 3) for number in range(records)])
    with database.connect(settings) as connection:
        connection.execute(RECORD_STEPS)
    assert start_sink(settings, once=True).wait_ended() is None
    read_to = [
        row[0] for row in database.rows(settings, "select distinct read_to from steps where read_to > 0 order by 1")
    ]
    assert read_to[-1] == records
    careful = settings.sink.max_batch_bytes // settings.wait.max_message_bytes
    assert read_to[0] <= careful + settings.wait.partitions
    steps = [after - before for before, after in pairwise([0, *read_to])]
    assert all(step <= GROWTH * before + settings.wait.partitions for before, step in pairwise(steps))
    assert max(steps) > records / 3, "what was learnt is used"
