"""Has our sink shown what stands in the log? What our sweeper exported last, a new source would export again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from wait_registry.cli.connect.apply import Pace, Tell
from wait_registry.cli.connect.asked_of_postgres import Aside, asked_of_postgres
from wait_registry.cli.connect.caught_up import await_none_left
from wait_registry.kafka.clients import Admin, admin
from wait_registry.kafka.positions import end_offsets
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    import psycopg
    from psycopg.rows import TupleRow

NAME: Final = "waitreg sink"
_POSITIONS: Final = "select partition, next_offset from sink_progress where topic = %s"


class OwnSinkCaughtUp:
    """Waits until our sink has come to where the wait topic ended when the wait began.

    The outbox waits for the view to be complete up to a row's expiry. A sweeper's tombstone comes later than that: by
    as much as the sweeper was late.
    """

    def __init__(self, settings: Settings, tell: Tell, aside: Aside, pace: Pace = time) -> None:
        """Describe how.

        Args:
            settings: cluster and Postgres, and how long the sink may make no progress: connect.start_timeout_s, and the
                pause between two rows of progress of an idle one.
            tell: gets a word, the sink and how far it is, now and then.
            aside: gets a sentence when Postgres doesn't tell us where the sink is: it isn't awaited then.
            pace: clock and sleep.
        """
        self._settings = settings
        self._tell = tell
        self._aside = aside
        self._pace = pace

    def wait(self) -> None:
        """Return once it has; at once where no sink of ours has been: by its rows alone our sweeper exports.

        Raises:
            SinksBehind: it makes no progress.
            TransientError: the cluster doesn't answer.
            ConfigurationError: the wait topic is missing, or not ours to see.
        """
        positions = self._positions()
        if not positions:
            return
        client: Admin = admin(self._settings.kafka)
        # An open transaction's records too: a sweeper that was killed may have left one that is going to be committed.
        ends = end_offsets(client, self._settings.wait.topic, list(positions), "read_uncommitted")
        await_none_left(
            NAME,
            "`waitreg query sink_freshness`",
            lambda: self._count_left(ends),
            self._settings.connect.start_timeout_s + self._settings.sink.idle_progress_s,
            self._tell,
            self._pace,
        )

    def _count_left(self, ends: dict[int, int]) -> int:
        # A Postgres that has gone away meanwhile shows no progress.
        positions = self._positions() or dict.fromkeys(ends, 0)
        return sum(max(0, end - positions.get(number, 0)) for number, end in ends.items())

    def _positions(self) -> dict[int, int] | None:
        def ask(connection: psycopg.Connection[TupleRow]) -> dict[int, int]:
            return dict(connection.execute(_POSITIONS, (self._settings.wait.topic,)).fetchall())

        return asked_of_postgres(self._settings, ask, self._aside)
