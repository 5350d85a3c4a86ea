"""The findings of `waitreg doctor`, run in this process."""

from __future__ import annotations

import psycopg

from tests.support.database import Database
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.settings.tree import Settings
from waitreg.doctor.catalogue import SERVICES, check_all
from waitreg.doctor.check import Concerned

_WORST = [Severity.OK, Severity.SKIPPED, Severity.WARNING, Severity.ERROR]


class Findings:
    """The lines of one run."""

    def __init__(self, lines: list[Diagnosis]) -> None:
        self.lines = lines

    @property
    def broken(self) -> list[str]:
        """The ids of the errors."""
        return [line.id for line in self.lines if line.severity is Severity.ERROR]

    def of(self, id: str) -> list[Diagnosis]:
        """Return the lines of one check."""
        found = [line for line in self.lines if line.id == id]
        assert found, f"no line {id}: {[line.id for line in self.lines]}"
        return found

    def one(self, id: str) -> Diagnosis:
        """Return a check's only line."""
        [line] = self.of(id)
        return line

    def standing(self, id: str) -> Severity:
        """Return the worst severity of a check's lines."""
        return max((line.severity for line in self.of(id)), key=_WORST.index)


def look(settings: Settings, *services: Concerned) -> Findings:
    """Run the checks of these services, of all three when none is named."""
    return Findings(list(check_all(settings, services or SERVICES)))


def as_role(role: str, settings: Settings, url: str) -> Settings:
    """Return settings for another role of the same Postgres."""
    secret = type(settings.postgres.url)(psycopg.conninfo.make_conninfo(url, user=role))
    return settings.model_copy(update={"postgres": settings.postgres.model_copy(update={"url": secret})})


def record_sweep(
    database: Database,
    settings: Settings,
    ago: str = "0 s",
    counts: str = '{"exported": 3, "redelivered": 1}',
    skipped: str = "[]",
    result: str = "done",
) -> None:
    """Insert a sweep of five due rows, as a sweeper does."""
    database.execute(
        settings,
        "insert into sweep (wait_topic, started_at, duration_s, due, counts, skipped, result)"
        " values (%s, now() - %s::interval, 1, 5, %s, %s, %s)",
        (settings.wait.topic, ago, counts, skipped, result),
    )
