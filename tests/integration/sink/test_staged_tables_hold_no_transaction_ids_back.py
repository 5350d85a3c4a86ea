"""A sink that runs undisturbed for weeks never is what holds Postgres' oldest transaction id back."""

from __future__ import annotations

from contextlib import closing

import pytest

from sink.apply.staging import FREEZE_EVERY_S
from tests.conftest import SettingsFactory
from tests.integration.sink.applying import HandFed
from tests.unit.processor.parts import HaltedClock
from tests.unit.sink.batches import Row

# The staged tables and those that hold their long values; age counts in transaction ids.
OLDER_THAN = """
with staged as (select oid, reltoastrelid from pg_class where relnamespace = pg_my_temp_schema() and relkind = 'r')
select count(*), count(*) filter (where age(relfrozenxid) > age(%s::xid))
from pg_class
where oid in (select oid from staged union all select reltoastrelid from staged)
"""


@pytest.mark.guarantee("P6.9")
def test_between_the_batches_of_a_stream_they_are_frozen_every_hour(prepared: SettingsFactory) -> None:
    clock = HaltedClock()
    with closing(HandFed(prepared(), clock=clock)) as sink:
        for hour in range(8):  # more often than a statement is run before the driver prepares it
            sink.feed([Row(b"unreadable", bytes(10_000), 0, hour)])
            now = later_transaction_id(sink)
            clock.now_s += FREEZE_EVERY_S / 2
            sink.applier.refresh()
            assert older_than(sink, now) == 6, "three tables with their toast tables, half an hour later"
            clock.now_s += FREEZE_EVERY_S / 2
            sink.applier.refresh()
            assert older_than(sink, now) == 0


def later_transaction_id(sink: HandFed) -> str:
    """Use a transaction id up and return it."""
    row = sink.connection.execute("select pg_current_xact_id()::xid::text").fetchone()
    assert row is not None
    return str(row[0])


def older_than(sink: HandFed, transaction_id: str) -> int:
    """Return how many of the connection's tables still keep transaction ids older than this one."""
    row = sink.connection.execute(OLDER_THAN, (transaction_id,)).fetchone()
    assert row is not None
    tables, older = row
    assert tables == 6
    return int(older)
