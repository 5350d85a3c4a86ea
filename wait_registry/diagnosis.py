"""What a check found: how severe it is, what was seen, and what fixes it."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from wait_registry.errors import ConfigurationError


class Severity(StrEnum):
    """How severe it is; only an error keeps a service from starting."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One result of one check.

    ``subject`` is what was checked, ``message`` what was seen, ``fix`` the command or change that fixes it.
    ``id`` names the check for scripts (``kafka.reachable``, ``topic.wait.cleanup.policy``) and never changes.
    ``transient`` marks an error that may pass without a fix, because a server didn't answer.
    """

    subject: str
    severity: Severity
    message: str
    fix: str = ""
    id: str = ""
    transient: bool = False

    def __str__(self) -> str:
        text = f"{self.subject}: {self.message}" if self.subject else self.message
        return f"{text}. Fix: {self.fix}" if self.fix and self.severity is not Severity.OK else text

    def as_json(self) -> dict[str, str]:
        """Return it as plain JSON values; what is OK needs no fix."""
        return {
            "id": self.id,
            "subject": self.subject,
            "severity": self.severity.value,
            "message": self.message,
            "fix": "" if self.severity is Severity.OK else self.fix,
        }


def ok(message: str) -> Diagnosis:
    """Return that something is as it should be; the caller's report adds the subject."""
    return Diagnosis("", Severity.OK, message)


def warning(message: str, fix: str = "") -> Diagnosis:
    """Return a warning; without a fix, the message says what to change."""
    return Diagnosis("", Severity.WARNING, message, fix)


def error(message: str, fix: str = "") -> Diagnosis:
    """Return an error; without a fix, the message says what to change."""
    return Diagnosis("", Severity.ERROR, message, fix)


def log_warnings(diagnoses: Iterable[Diagnosis], log: logging.Logger) -> None:
    """Log what deserves attention and keeps nothing from starting."""
    for diagnosis in diagnoses:
        if diagnosis.severity is Severity.WARNING:
            log.warning("%s", diagnosis)


def refuse_errors(diagnoses: Iterable[Diagnosis]) -> None:
    """Refuse to start if there is an error.

    Raises:
        ConfigurationError: lists every error.
    """
    errors = [str(diagnosis) for diagnosis in diagnoses if diagnosis.severity is Severity.ERROR]
    if errors:
        raise ConfigurationError("\n".join(errors))
