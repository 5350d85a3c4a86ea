"""A dead letter topic that was deleted and recreated: the rows of the old one are kept, under a name of their own."""

from __future__ import annotations

import logging
from typing import Final

from sink.progress import QUERIES, Connection, forget_progress

log = logging.getLogger(__name__)

ROWS_AT_ONCE: Final = 10_000


def keep_apart(connection: Connection, topic: str, topic_id: str) -> None:
    """Rename the topic of all rows of the old one, then forget the positions in it; about 40 us a row.

    The new topic counts its offsets from 0 again, so its dead letters would replace those of the old one, of which
    these rows are all that is left. If interrupted, the next start continues it: the old ID is still recorded.

    Args:
        connection: in autocommit, of the only stream that writes rows of this topic.
        topic: its name, old and new.
        topic_id: of the old one.

    Raises:
        psycopg.Error: Postgres went away; retry.
    """
    kept = f"{topic}@{topic_id}"  # no topic's name has an @
    log.warning(
        "dead letter topic %s was recreated: reading it from its beginning. Rows of the old one are kept, with %s for "
        "their topic",
        topic,
        kept,
    )
    _rename(connection, topic, kept)
    with connection.transaction():
        # From here on another sink's batch of the old topic is refused; one that came before is renamed as well.
        forget_progress(connection, topic)
        _rename(connection, topic, kept)


def _rename(connection: Connection, topic: str, kept: str) -> None:
    """Rename in ranges of offsets: a long table is locked a little at a time, and read once."""
    for partition, first, last in connection.execute(QUERIES["dead_letter_ranges"], {"topic": topic}).fetchall():
        for offset in range(first, last + 1, ROWS_AT_ONCE):
            places = {"partition": partition, "first": offset, "beyond": offset + ROWS_AT_ONCE}
            connection.execute(QUERIES["rename_dead_letters"], {"topic": topic, "kept": kept, **places})
