"""Does the source export? A look at what is due: a task that stands still says RUNNING all the same."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import psycopg

from wait_registry.errors import WaitRegistryError
from wait_registry.postgres.connection import connect
from wait_registry.postgres.queries import Queries
from wait_registry.settings.root import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)

QUERIES: Final = Queries("connect_watch")
# What a due registration lacks, and how the oldest of them is found; the second may pass over many.
_OLDEST: Final = {"tombstone": "oldest_due", "dead_letter": "oldest_unexported"}


@dataclass(frozen=True, slots=True)
class DueLook:
    """What one look found: for how long (s) the oldest has been due that lacks its tombstone, or its dead letter.

    ``trouble`` is why Postgres couldn't be asked, None when it answered. An age that took too long to find is left out.
    """

    trouble: str | None = None
    ages_s: Mapping[str, float] = field(default_factory=dict)


class DueWatch:
    """The looks at Postgres; its absence is part of what they find."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._trouble: str | None = None

    def run_once(self) -> DueLook:
        """Ask what is due, within the time limits of postgres.connect_timeout_s; raises nothing."""
        try:
            look = DueLook(None, self._ages_s())
        except (WaitRegistryError, psycopg.Error) as error:
            look = DueLook(" ".join(str(error).split()))
        if (look.trouble is None) != (self._trouble is None):
            log.warning(
                "%s",
                f"what is due can't be told: {look.trouble}; Postgres is asked again"
                if look.trouble
                else "Postgres answers again",
            )
        self._trouble = look.trouble
        return look

    def _ages_s(self) -> dict[str, float]:
        settings, found = self._settings, {}
        question = {"topic": settings.wait.topic, "skew_s": settings.wait.skew_allowance_s}
        with connect(settings.postgres, autocommit=True, application_name="waitreg connect watch") as connection:
            limit = f"{settings.postgres.connect_timeout_s}s"
            connection.execute("select set_config('statement_timeout', %s, false)", (limit,))
            for lacks, query in _OLDEST.items():
                try:
                    row = connection.execute(QUERIES[query], question).fetchone()
                except psycopg.errors.QueryCanceled:
                    continue
                assert row is not None  # an aggregate without group by has one row
                found[lacks] = float(row[0])
        return found
