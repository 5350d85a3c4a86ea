"""What `waitreg doctor` says, asked in this process."""

from __future__ import annotations

from wait_registry.cli.checks.catalogue import SERVICES, check_all
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.settings.relations import Service
from wait_registry.settings.root import Settings

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
        """Return how a check stands: its worst line counts."""
        return max((line.severity for line in self.of(id)), key=_WORST.index)


def look(settings: Settings, *services: Service) -> Findings:
    """Run the checks of these services, of all three when none is named."""
    return Findings(list(check_all(settings, services or SERVICES)))
