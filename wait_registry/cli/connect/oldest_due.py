"""How long the oldest expired registrations have been due: a source's task can be RUNNING and export nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import psycopg

from wait_registry.errors import WaitRegistryError
from wait_registry.postgres.connection import connect
from wait_registry.postgres.queries import Queries
from wait_registry.settings.root import Settings

log = logging.getLogger(__name__)

QUERIES: Final = Queries("connect")
# What a due registration lacks, and the query for the oldest; the second may pass over many rows.
_OLDEST: Final = {"tombstone": "oldest_due", "dead_letter": "oldest_unexported"}


@dataclass(frozen=True, slots=True)
class OldestDue:
    """For how long (s) the oldest has been due that lacks its tombstone, or its dead letter.

    ``trouble`` is why Postgres couldn't be asked, None when it answered. An age that took too long to find is missing.
    """

    trouble: str | None = None
    ages_s: Mapping[str, float] = field(default_factory=dict)


class DueWatch:
    """The looks at Postgres; its absence is part of what they find."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._trouble: str | None = None

    def run_once(self) -> OldestDue:
        """Ask what is due, within the time limits of postgres.connect_timeout_s; raises nothing."""
        try:
            found = OldestDue(None, self._ages_s())
        except (WaitRegistryError, psycopg.Error) as error:
            found = OldestDue(" ".join(str(error).split()))
        if (found.trouble is None) != (self._trouble is None):
            lost = f"the due registrations are unknown: {found.trouble}; Postgres is asked again"
            log.warning("%s", lost if found.trouble else "Postgres answers again")
        self._trouble = found.trouble
        return found

    def _ages_s(self) -> dict[str, float]:
        settings, found = self._settings, {}
        question = {"topic": settings.wait.topic, "skew_s": settings.wait.skew_allowance_s}
        with connect(settings.postgres, autocommit=True, application_name="waitreg connect watch") as connection:
            connection.execute(QUERIES["limit_statements"], {"timeout": f"{settings.postgres.connect_timeout_s}s"})
            for lacks, query in _OLDEST.items():
                try:
                    row = connection.execute(QUERIES[query], question).fetchone()
                except psycopg.errors.QueryCanceled:
                    continue
                assert row is not None  # an aggregate without group by has one row
                found[lacks] = float(row[0])
        return found
