"""Runs checks one after another: none hangs, none ends the run, and none hides another that doesn't depend on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from threading import Thread
from typing import TYPE_CHECKING, Final

from wait_registry.cli.checks.check import Check
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.errors import TransientError, WaitRegistryError

if TYPE_CHECKING:
    from wait_registry.settings.root import Settings

PATIENCE_S: Final = 2.0
_WITHOUT_EXTRA: Final = "pip install 'wait-registry[sink,sweeper]'"

Tell = Callable[[str], None]


def run_checks(checks: Iterable[Check], settings: Settings, tell: Tell) -> Iterator[Diagnosis]:
    """Yield the lines of every check, in the order of the checks.

    Args:
        checks: what to look at; one whose needs aren't met is skipped, and so is what needs it.
        settings: what the checks look at.
        tell: gets a sentence when a check takes long, so that nobody thinks that the command hangs.
    """
    limit_s = longest_s(settings)
    unsound: dict[str, str] = {}
    for check in checks:
        blocker = next((subject for id, subject in unsound.items() if _concerns(id, check.needs)), None)
        if blocker is not None:
            unsound.setdefault(check.id, blocker)
            yield Diagnosis(check.subject, Severity.SKIPPED, f"{blocker} must be sound first", id=check.id)
            continue
        for line in _look(check, settings, limit_s, tell):
            if line.severity is Severity.ERROR:
                unsound.setdefault(line.id, line.subject)
            yield line


def longest_s(settings: Settings) -> float:
    """Return how long a check may take, s: a few requests that run into their own limits, and then some."""
    return 3 * settings.kafka.request_timeout_s + settings.postgres.connect_timeout_s + 30


def _concerns(unsound: str, needs: tuple[str, ...]) -> bool:
    """Tell whether one of the needs is what is unsound, a part of it or the whole of it."""
    return any(f"{unsound}.".startswith(f"{need}.") or f"{need}.".startswith(f"{unsound}.") for need in needs)


def _look(check: Check, settings: Settings, limit_s: float, tell: Tell) -> list[Diagnosis]:
    lines: list[Diagnosis] = []
    # A thread, since a handler's module that hangs in its import, or a client's library, knows no time-outs of ours.
    thread = Thread(target=_collect, args=(check, settings, lines), name=f"check {check.id}", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    if thread.is_alive():
        tell(f"{check.subject}: still looking, for {limit_s:.0f} s at most")
        thread.join(limit_s - PATIENCE_S)
    found = list(lines)
    if thread.is_alive():
        found.append(Diagnosis(check.subject, Severity.ERROR, f"didn't end within {limit_s:.0f} s", check.fix))
    # What a client says may have several lines; a check's has one.
    return [replace(line, id=line.id or check.id, message=" ".join(line.message.split())) for line in found]


def _collect(check: Check, settings: Settings, lines: list[Diagnosis]) -> None:
    try:
        lines.extend(check.look(settings))
    except WaitRegistryError as error:
        transient = isinstance(error, TransientError)
        lines.append(Diagnosis(check.subject, Severity.ERROR, str(error), check.fix, transient=transient))
    except ImportError as error:
        lines.append(Diagnosis(check.subject, Severity.ERROR, str(error), _WITHOUT_EXTRA))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the other checks still have something to say
        seen = f"{type(error).__name__}: {str(error).strip()}"
        lines.append(Diagnosis(check.subject, Severity.ERROR, seen, check.fix))
