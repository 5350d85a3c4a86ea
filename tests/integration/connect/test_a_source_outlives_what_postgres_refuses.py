"""P8: what Postgres refuses or never answers stops no source for good, and shows nobody a record."""

from __future__ import annotations

import pytest

from tests.integration.connect.exporting import Exporting
from tests.support.database import Database
from wait_registry.local.connect_worker import ConnectWorker

pytestmark = pytest.mark.parametrize("source_family", ["debezium"], indirect=True)

# A number, as all bodies of `Exporting`.
REFUSED = 424_242
IN_HEX = str(REFUSED).encode().hex()


def test_a_row_that_the_outbox_refuses_is_in_no_log(
    exporting: Exporting, database: Database, connect: ConnectWorker
) -> None:
    begun = connect.log.stat().st_size
    with database.connect(exporting.settings) as connection:
        connection.execute(f"alter table expired_outbox add constraint refusing check (body <> '{REFUSED}')".encode())
        exporting.expire(REFUSED, REFUSED)
        exporting.start_source()
        exporting.wait_until(lambda: "refusing" in said(connect, begun), "the error in the worker's log")
        connection.execute("alter table expired_outbox drop constraint refusing")
    assert exporting.wait_exported(1) == [REFUSED]
    assert str(REFUSED) not in said(connect, begun)
    assert IN_HEX not in said(connect, begun)


def test_a_connection_that_is_silent_for_too_long_is_given_up_and_the_export_goes_on(
    exporting: Exporting, database: Database, connect: ConnectWorker
) -> None:
    begun = connect.log.stat().st_size
    topics = exporting.settings.wait.topic, exporting.settings.dead_letter.topic
    with database.connect(exporting.settings) as holder:
        # Else Postgres would answer that the lock is held, long before.
        holder.execute("alter function fill_expired_outbox set lock_timeout = 0")
        with holder.transaction():
            holder.execute("select fill_expired_outbox(%s, 0, 1, 0, %s, 1)", topics)
            exporting.expire(1, 3)
            exporting.start_source(driver__socketTimeout="2")
            exporting.wait_until(lambda: "Read timed out" in said(connect, begun), "the silent connection given up")
    assert exporting.wait_exported(3) == [1, 2, 3]


def said(worker: ConnectWorker, begun: int) -> str:
    """Return what the worker's log has come to say since it was so long, bytes."""
    return worker.log.read_bytes()[begun:].decode("utf-8", "replace")
