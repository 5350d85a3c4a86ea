"""A check of `waitreg doctor`, and how checks run: none hangs, none ends the run, none hides another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from threading import Thread
from typing import Final, Literal

from wait_registry.diagnosis import Diagnosis, Severity, error
from wait_registry.errors import TransientError, WaitRegistryError
from wait_registry.settings.tree import Settings

Look = Callable[[Settings], Iterator[Diagnosis]]
Notify = Callable[[str], None]
# The services, what is checked where a Kafka Connect source exports in the sweeper's place, and the operator who
# redrives dead letters.
Concerned = Literal["processor", "sink", "sweeper", "connect", "redrive"]

EVERY: Final[frozenset[Concerned]] = frozenset({"processor", "sink", "sweeper", "connect"})
PROCESSOR: Final[frozenset[Concerned]] = frozenset({"processor"})
SINK: Final[frozenset[Concerned]] = frozenset({"sink"})
SWEEPER: Final[frozenset[Concerned]] = frozenset({"sweeper"})
REDRIVE: Final[frozenset[Concerned]] = frozenset({"redrive"})
EXPORTING: Final[frozenset[Concerned]] = SWEEPER | {"connect"}
# The services that run on Spark, and those that use Postgres.
SPARK: Final[frozenset[Concerned]] = SINK | SWEEPER
USES_POSTGRES: Final[frozenset[Concerned]] = SINK | EXPORTING

PATIENCE_S: Final = 2.0
_WITHOUT_EXTRA: Final = "pip install 'wait-registry[sink,sweeper]'"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that `waitreg doctor` checks; ``look`` only reads.

    ``id`` is stable, for scripts; ``subject`` is for people. ``services`` are those that the check concerns. ``needs``
    are ids (or their beginnings, ``topic.wait``) of diagnoses that must not be errors, because this check could only
    report the same again. ``fix`` is what to do if ``look`` raises an error.
    """

    id: str
    subject: str
    look: Look
    services: frozenset[Concerned] = EVERY
    needs: tuple[str, ...] = ()
    fix: str = ""


def run_checks(checks: Iterable[Check], settings: Settings, notify: Notify) -> Iterator[Diagnosis]:
    """Yield the diagnoses of every check, in the order of the checks.

    Args:
        checks: a check whose needs aren't met is skipped, and so are those that need it.
        settings: what they check.
        notify: gets a sentence if a check takes long, so that the command doesn't seem to hang.
    """
    limit_s = longest_s(settings)
    unsound: dict[str, str] = {}
    for check in checks:
        blocker = next((subject for id, subject in unsound.items() if _concerns(id, check.needs)), None)
        if blocker is not None:
            unsound.setdefault(check.id, blocker)
            yield Diagnosis(check.subject, Severity.SKIPPED, f"{blocker} must be sound first", id=check.id)
            continue
        for line in _look(check, settings, limit_s, notify):
            if line.severity is Severity.ERROR:
                unsound.setdefault(line.id, line.subject)
            yield line


def longest_s(settings: Settings) -> float:
    """Return how long a check may take, s: a few requests that reach their own timeouts, and a margin."""
    return 3 * settings.kafka.request_timeout_s + settings.postgres.connect_timeout_s + 30


def _concerns(unsound: str, needs: tuple[str, ...]) -> bool:
    """Return whether one of the needs is the unsound check, a part of it or the whole of it."""
    return any(f"{unsound}.".startswith(f"{need}.") or f"{need}.".startswith(f"{unsound}.") for need in needs)


def _look(check: Check, settings: Settings, limit_s: float, notify: Notify) -> list[Diagnosis]:
    lines: list[Diagnosis] = []
    # In a thread, because the import of a handler's module or a client library may hang without a timeout.
    thread = Thread(target=_collect, args=(check, settings, lines), name=f"check {check.id}", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    if thread.is_alive():
        notify(f"{check.subject}: still checking, for {limit_s:.0f} s at most")
        thread.join(limit_s - PATIENCE_S)
    found = list(lines)
    if thread.is_alive():
        found.append(error(f"didn't end within {limit_s:.0f} s", check.fix))
    # A client's message may have several lines; a diagnosis has one.
    return [
        replace(
            line,
            id=line.id or check.id,
            subject=line.subject or check.subject,
            message=" ".join(line.message.split()),
        )
        for line in found
    ]


def _collect(check: Check, settings: Settings, lines: list[Diagnosis]) -> None:
    try:
        lines.extend(check.look(settings))
    except WaitRegistryError as refusal:
        fix = getattr(refusal, "fix", "") or check.fix
        lines.append(replace(error(str(refusal), fix), transient=isinstance(refusal, TransientError)))
    except ImportError as absence:
        lines.append(error(str(absence), _WITHOUT_EXTRA))
    except (Exception, SystemExit) as failure:  # noqa: BLE001 - the other checks still run
        lines.append(error(f"{type(failure).__name__}: {str(failure).strip()}", check.fix))
