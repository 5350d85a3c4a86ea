"""Has a sweeper of ours swept while a source was away? Its replication slot still holds rows from before that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from wait_registry.cli.connect.asked_of_postgres import Aside, asked_of_postgres
from wait_registry.cli.connect.connector_file import Connector
from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

_STALE: Final = """
select slot_name
from pg_replication_slots
where slot_name = any(%(slots)s)
    and database = current_database()
    and exists (
        select from sweep
        where wait_topic = %(topic)s
            and started_at > (select max(created_at) from expired_outbox where wait_topic = %(topic)s)
    )
order by slot_name
"""


def require_no_stale_slot(new: Iterable[Connector], settings: Settings, aside: Aside) -> None:
    """Refuse new sources whose slot is older than a sweep: they would send once more what that exported.

    A row that stood in the outbox and wasn't sent when the source was removed is exported by the sweeper, and read from
    the slot all the same. A source without a slot begins with what is open.

    Args:
        new: sources that aren't there yet.
        settings: whose registry it is.
        aside: gets a sentence when Postgres doesn't tell us; the steps in connect-configs/README.md must do then.

    Raises:
        ConfigurationError: such a slot is there.
    """
    slots = [connector.config["slot.name"] for connector in new if "slot.name" in connector.config]
    if not slots:
        return

    def ask(connection: psycopg.Connection[TupleRow]) -> list[str]:
        given = {"slots": slots, "topic": settings.wait.topic}
        return [str(name) for (name,) in connection.execute(_STALE, given).fetchall()]

    stale = asked_of_postgres(settings, ask, aside)
    if stale:
        drop = "; ".join(f"select pg_drop_replication_slot('{name}')" for name in stale)
        raise ConfigurationError(
            f"nothing was changed: a sweeper of ours has swept since the last row came into expired_outbox, and what "
            f"the replication slot {', '.join(stale)} still holds from before it has exported: the source would export "
            f"that again. It has to begin anew: {drop}; run this again. If a connector then fails because its slot is "
            'gone, its offsets are still known: steps 1, 3 and 4 of "When a source has lost its place" '
            "(connect-configs/README.md)"
        )
