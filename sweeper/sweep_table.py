"""The table ``sweep``: what the last sweeps did, for people."""

from __future__ import annotations

import psycopg
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from sweeper.due import QUERIES
from sweeper.sweep import Sweep


def record_sweep(connection: psycopg.Connection[TupleRow], sweep: Sweep, instance: str) -> None:
    """Write a sweep down.

    Args:
        connection: in autocommit.
        sweep: what was done; its reason, if it has one of its own, stands among the skipped.
        instance: name of the sweeper process.

    Raises:
        psycopg.Error: Postgres went away; the sweep itself is not touched by that.
    """
    skipped = sweep.skipped_as_json() or ([{"reason": sweep.reason}] if sweep.reason else [])
    connection.execute(
        QUERIES["record_sweep"],
        {
            "wait_topic": sweep.wait_topic,
            "started_at": sweep.started_at,
            "duration_s": sweep.duration_s,
            "due": sweep.due,
            "exported": sweep.exported,
            "redelivered": sweep.redelivered,
            "superseded": sweep.superseded,
            "set_aside": sweep.set_aside,
            "skipped": Jsonb(skipped),
            "result": sweep.result.value,
            "instance": instance,
        },
    )
