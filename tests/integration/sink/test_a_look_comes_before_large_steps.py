"""P7: what nobody has looked at is read when all before it is written, so that a driver it kills has come further."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sink.sampling import SAMPLE_RECORDS
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
def test_the_first_batches_behind_a_look_are_written_one_by_one(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink
) -> None:
    settings = prepared({"sink.trigger_s": 0.1})
    start_sink(settings, once=True).wait_ended()  # notes its positions
    records = 10 * SAMPLE_RECORDS
    WaitTopic(topics, settings.wait.topic).write(*[wait_record(new_id(), number % 3) for number in range(records)])
    with database.connect(settings) as connection:
        connection.execute(RECORD_STEPS)
    assert start_sink(settings, once=True).wait_ended() is None
    read_to = [
        row[0] for row in database.rows(settings, "select distinct read_to from steps where read_to > 0 order by 1")
    ]
    assert read_to[-1] == records
    assert read_to[0] < 1.5 * SAMPLE_RECORDS, "about what was looked at, and nothing behind it"
    steps = [after - before for before, after in pairwise(read_to)]
    assert max(steps) > 2 * SAMPLE_RECORDS, "what was learnt is not forgotten when larger batches begin"
