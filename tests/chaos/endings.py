"""How processes ended, and what of that must not be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.chaos.history.history import FaultDone
from tests.chaos.service import Cause, Exit, Service

DONE, FAILED, FENCED, BY_SIGTERM = 0, 1, 3, 143
# A fault shows in a service that long after it is healed: sessions, transactions and retries have to run out.
AFTERMATH_MS = 30_000
TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True, slots=True)
class Ending:
    """A process that ended as it must not, and why that is so."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"exit {self.name}: {self.why}"


def unexpected_endings(company: Sequence[Service], faults: Sequence[FaultDone]) -> list[Ending]:
    """List what was wrong with the ends of a run's processes; they have all ended."""
    return [ending for service in company for ending in _of_service(service, faults)]


def _of_service(service: Service, faults: Sequence[FaultDone]) -> Iterator[Ending]:
    for ended in service.exits:
        why = unexpected(ended, faults)
        if why:
            yield Ending(service.name, why)
    text = service.log.read_text("utf-8", "replace") if service.log.exists() else ""
    if any(line.startswith(TRACEBACK) for line in text.splitlines()):
        yield Ending(service.name, f"its log {service.log} has a traceback: errors are told in a line")


def unexpected(ended: Exit, faults: Sequence[FaultDone]) -> str:
    """Say what is wrong with an exit; empty when nothing is.

    Who is asked to end (SIGTERM) ends with 0, and in time; who is killed isn't asked. By itself a process may end with
    1 or 3 while a fault is felt: a lost JVM, a position that another sink has moved. Who hadn't come so far as to open
    its port may be ended by the signal itself, as any program.
    """
    if ended.cause is Cause.KILLED:
        return ""
    if ended.cause is Cause.ASKED_EARLY and ended.status == BY_SIGTERM:
        return ""
    if ended.cause in (Cause.ASKED, Cause.ASKED_EARLY):
        return "" if ended.status == DONE else f"asked to end, it ended with status {ended.status}"
    felt = any(fault.began_ms <= ended.at_ms <= fault.ended_ms + AFTERMATH_MS for fault in faults)
    if ended.status in (FAILED, FENCED) and felt:
        return ""
    return f"ended by itself with status {ended.status}" + ("" if felt else ", while no fault was felt")
