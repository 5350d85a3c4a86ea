"""How processes ended, and the tracebacks in their logs: what of that must not be."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tests.chaos.history.history import FaultDone
from tests.chaos.service import Cause, Exit, Service

DONE, FAILED, FENCED, BY_SIGTERM = 0, 1, 3, 143
# A fault shows in a service that long after it is healed: sessions, transactions and retries have to run out.
AFTERMATH_MS = 30_000

Explains = Callable[[FaultDone, str, bool], bool]
"""Whether a fault explains that the service of this name ended; with whether another of its kind was there."""


def _lost_its_jvm(fault: FaultDone, name: str, beside_another: bool) -> bool:
    return fault.name == "kill_jvm" and fault.target == name


def _lost_its_lock(fault: FaultDone, name: str, beside_another: bool) -> bool:
    """The lock is a session of Postgres: it goes with that, and another sink takes it."""
    return beside_another and fault.target in (name, "postgres")


MAY_END_ITSELF: Final[Mapping[tuple[str, int], Explains]] = {
    ("sink", FAILED): _lost_its_jvm,
    ("sink", FENCED): _lost_its_lock,
}
"""Who may end by itself, with which status, by which fault. Whoever isn't named continues, whatever is done to others:
processors and sweepers wait out every fault that is drawn."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A process that ended as it must not, and why that is so."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"exit {self.name}: {self.why}"


def unexpected_endings(company: Sequence[Service], faults: Sequence[FaultDone]) -> list[Ending]:
    """List what was wrong with the ends of a run's processes, visitors included; they have all ended."""
    kinds = [service.kind for service in company]
    return [ending for service in company for ending in _of_service(service, faults, kinds.count(service.kind) > 1)]


def _of_service(service: Service, faults: Sequence[FaultDone], beside_another: bool) -> Iterator[Ending]:
    for ended in service.exits:
        why = unexpected(ended, faults, beside_another)
        if why:
            yield Ending(service.name, why)
    text = service.log.read_text("utf-8", "replace") if service.log.exists() else ""
    found = list(traces(service.name, text.splitlines(), faults))
    if found:
        why = (
            f"its log {service.log} has {len(found)} tracebacks, where errors are told in a line; the first: {found[0]}"
        )
        yield Ending(service.name, why)


def unexpected(ended: Exit, faults: Sequence[FaultDone], beside_another: bool = False) -> str:
    """Say what is wrong with an exit; empty when nothing is.

    Who is asked to end (SIGTERM) ends with 0, and in time; who is killed isn't asked. By itself, or before it could
    heed the signal, a process ends only as `MAY_END_ITSELF` has it, while that fault is felt. Who hadn't come so far as
    to open its port may be ended by the signal itself, as any program.

    Args:
        ended: the exit.
        faults: of the run.
        beside_another: whether the run had more than one service of its kind.
    """
    if ended.cause is Cause.KILLED:
        return ""
    if ended.cause is Cause.ASKED_EARLY and ended.status == BY_SIGTERM:
        return ""
    asked = ended.cause in (Cause.ASKED, Cause.ASKED_EARLY)
    if asked and ended.status == DONE:
        return ""
    felt = [fault for fault in faults if fault.began_ms <= ended.at_ms <= fault.ended_ms + AFTERMATH_MS]
    explains = MAY_END_ITSELF.get((ended.name.partition("-")[0], ended.status))
    if explains is not None and any(explains(fault, ended.name, beside_another) for fault in felt):
        return ""
    how = "asked to end, it ended" if asked else "ended by itself"
    return f"{how} with status {ended.status}, and no fault that was felt then explains it"


TRACEBACK = "Traceback (most recent call last)"
# A JVM that is killed shows to whoever uses it next; the sink says then what broke, and ends.
LOST_JVM_MS = 30_000
# What py4j logs of a call that finds no JVM. A standby has no use for its own until it is told to end.
NO_JVM = "Exception while sending command."


def traces(name: str, lines: Iterable[str], faults: Sequence[FaultDone]) -> Iterator[str]:
    """Return what the log of a service tells with a traceback and mustn't, in a few words each.

    A traceback is a field of a line in JSON, or printed by what ends a process without its log. py4j logs one with
    each call to a JVM that isn't there any more, and the sink with what it doesn't know: where its JVM was killed,
    both belong to that.

    Args:
        name: of the service.
        lines: of its log.
        faults: of the run.
    """
    lost = [fault for fault in faults if fault.name == "kill_jvm" and fault.target == name]
    for line in lines:
        if line.startswith(TRACEBACK):
            yield "an error that was printed and not logged"
        elif line.startswith("{") and '"traceback":' in line:
            try:
                told = json.loads(line)
            except ValueError:
                yield "an error in a line that was torn"
                continue
            at_ms = datetime.fromisoformat(told["time"]).timestamp() * 1000
            felt_ms = math.inf if told["message"] == NO_JVM else LOST_JVM_MS
            if not any(fault.began_ms <= at_ms <= fault.ended_ms + felt_ms for fault in lost):
                yield f"{told['level']} of {told['logger']} at {told['time']}: {told['message']}"
