"""One line of `waitreg doctor`: what was looked at, how it stands, what mends it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Standing(StrEnum):
    """How the thing looked at stands; only ``error`` keeps a service from starting."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CheckLine:
    """``subject`` is what was looked at, ``seen`` what was found, ``mend`` the command or change that mends it.

    ``id`` names the check for scripts (``kafka.reachable``, ``topic.wait.cleanup.policy``) and never changes; the
    runner fills in that of the check when a line has none of its own. ``transient`` marks an error that may pass
    without any mending: somebody didn't answer.
    """

    subject: str
    standing: Standing
    seen: str
    mend: str = ""
    id: str = ""
    transient: bool = False

    def __str__(self) -> str:
        mend = f"\n{'':<10}mend: {self.mend}" if self.mend and self.standing is not Standing.OK else ""
        return f"{self.standing:<8}  {self.subject}: {self.seen}{mend}"

    def as_json(self) -> dict[str, str]:
        """Return it as plain JSON values; a line that is well needs no mending."""
        return {
            "id": self.id,
            "subject": self.subject,
            "standing": self.standing.value,
            "seen": self.seen,
            "mend": "" if self.standing is Standing.OK else self.mend,
        }
