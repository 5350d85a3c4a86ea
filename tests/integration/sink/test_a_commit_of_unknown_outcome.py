"""P6: a connection broken at COMMIT leaves open whether it happened; the positions tell, and nothing is doubled."""

from __future__ import annotations

import psycopg
import pytest
from pydantic import SecretStr

from sink.position import TopicPartition
from sink.progress import read_progress
from tests.conftest import SettingsFactory
from tests.integration.sink.applying import HandFed, now_ms
from tests.integration.sink.commit_cut import CommitCut
from tests.integration.sink.wait_topic import new_id, tombstone, wait_record
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.waiting import wait_until
from tests.unit.sink.batches import Row
from wait_registry.settings.root import Settings


def row(record: Outgoing, offset: int) -> Row:
    return Row(record.key, record.value, record.partition or 0, offset, now_ms(), tuple(record.headers))


def no_session_left(database: Database, ours: Settings, pid: int) -> bool:
    return database.rows(ours, "select 1 from pg_stat_activity where pid = %s", pid) == []


@pytest.mark.parametrize("commit_arrives", [True, False])
def test_the_next_run_begins_where_the_positions_say(
    prepared: SettingsFactory, database: Database, commit_arrives: bool
) -> None:
    ours, (resolved, standing) = prepared(), (new_id(), new_id())
    first = [row(wait_record(resolved, 0), 0), row(wait_record(standing, 0), 1)]
    second = [row(tombstone(resolved, 0), 2), row(tombstone(new_id(), 0), 3)]
    with CommitCut(database.url, commit_arrives=commit_arrives) as cut:
        url = SecretStr(cut.url)
        broken = HandFed(ours.model_copy(update={"postgres": ours.postgres.model_copy(update={"url": url})}))
        broken.feed(first)
        pid = broken.connection.info.backend_pid
        cut.armed.set()
        with pytest.raises(psycopg.OperationalError):
            broken.feed(second)
    wait_until(lambda: no_session_left(database, ours, pid), 60, "the end of the broken session")

    again = HandFed(ours)
    _, positions = read_progress(again.connection, "wait")
    reached = positions[TopicPartition("wait", 0)].next_offset
    assert reached == (4 if commit_arrives else 2)
    again.feed([each for each in second if each.offset >= reached])
    again.close()
    assert database.rows(ours, "select wait_expiration_uuid from wait") == [(standing,)]
    assert database.rows(ours, "select wait_offset from late_outcome") == [(3,)]
