"""How processes ended, and the tracebacks in their logs: what of that must not be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from tests.chaos.checker.disturbance import BROKER, hits
from tests.chaos.history.history import FaultDone
from tests.chaos.service import Cause, Exit, Service

FAILED, FENCED, BY_SIGTERM = 1, 3, 143
# A fault shows in a service that long after it is healed: sessions, transactions and retries have to run out.
AFTERMATH_MS = 30_000
TRACEBACK = "Traceback (most recent call last)"
# A JVM that is killed shows at its next use; the sink logs then what broke, and ends.
LOST_JVM_MS = 30_000
# What a processor logs when its Kafka client has forgotten all brokers. It notices that for 30 s, and then it drains.
FORGOTTEN = "(librdkafka issue 5301,"
DRAINED_MS, FORGOTTEN_MS = 30_000, 90_000
# What py4j logs of a call that finds no JVM. A standby doesn't use its own until it is stopped.
NO_JVM = "Exception while sending command."


def unexpected_endings(company: Sequence[Service], faults: Sequence[FaultDone]) -> list[str]:
    """Return what was wrong with the ends of a run's processes, visitors included; they have all ended."""
    kinds = [service.kind for service in company]
    return [
        f"exit {service.name}: {why}"
        for service in company
        for why in _of_service(service, faults, kinds.count(service.kind) > 1)
    ]


def _of_service(service: Service, faults: Sequence[FaultDone], has_standby: bool) -> Iterator[str]:
    lines = service.log.read_text("utf-8", "replace").splitlines() if service.log.exists() else []
    for ended in service.exits:
        if why := unexpected(ended, faults, has_standby, forgot_brokers(ended, lines)):
            yield why
    found = list(tracebacks(service.name, lines, faults))
    if found:
        yield f"its log {service.log} has {len(found)} tracebacks, where errors take one line; the first: {found[0]}"


def forgot_brokers(ended: Exit, lines: Iterable[str]) -> bool:
    """Return whether a process ended because its Kafka client had forgotten all brokers, as its log says."""
    said = (json.loads(line)["time"] for line in lines if FORGOTTEN in line)
    return any(0 <= ended.at_ms - _ms(time) <= DRAINED_MS for time in said)


def unexpected(
    ended: Exit, faults: Sequence[FaultDone], has_standby: bool = False, forgot_brokers: bool = False
) -> str:
    """Return what is wrong with an exit; empty when nothing is.

    A service that is stopped (SIGTERM) ends with 0; before it has opened its port the signal itself may end it, as any
    program. Otherwise it ends only as `_explains` has it, while that fault is felt, or because it ``forgot_brokers``
    after an outage of the broker. With ``has_standby`` the run had more than one service of its kind.
    """
    asked = ended.cause in (Cause.ASKED, Cause.ASKED_EARLY)
    in_order = asked and (ended.status == 0 or (ended.cause is Cause.ASKED_EARLY and ended.status == BY_SIGTERM))
    if ended.cause is Cause.KILLED or in_order:
        return ""
    felt = [fault for fault in faults if fault.began_ms <= ended.at_ms <= fault.ended_ms + AFTERMATH_MS]
    if any(_explains(fault, ended, has_standby) for fault in felt):
        return ""
    outages = (fault for fault in faults if hits(fault, *BROKER))
    if forgot_brokers and any(fault.began_ms <= ended.at_ms <= fault.ended_ms + FORGOTTEN_MS for fault in outages):
        return ""
    how = "asked to end, it ended" if asked else "ended by itself"
    return f"{how} with status {ended.status}, and no fault that was felt then explains it"


def _explains(fault: FaultDone, ended: Exit, has_standby: bool) -> bool:
    """Return whether a fault explains that a service ended; processors and sweepers wait out every fault.

    A sink ends when it has lost its JVM. Its lock is a session of Postgres: if that ends, another sink takes it.
    """
    if ended.name.partition("-")[0] != "sink":
        return False
    if ended.status == FAILED:
        return fault.name == "kill_jvm" and fault.target == ended.name
    return ended.status == FENCED and has_standby and fault.target in (ended.name, "postgres")


def tracebacks(name: str, lines: Iterable[str], faults: Sequence[FaultDone]) -> Iterator[str]:
    """Yield the tracebacks in a service's log that must not be there, in a few words each.

    A traceback is a field of a line in JSON, or printed by what ends a process without its log. py4j logs one with each
    call to a JVM that doesn't exist any more, and the sink with what it doesn't know: both may follow a killed JVM.
    """
    lost = [fault for fault in faults if fault.name == "kill_jvm" and fault.target == name]
    for line in lines:
        if line.startswith(TRACEBACK):
            yield "an error that was printed and not logged"
        elif line.startswith("{") and '"traceback":' in line:
            try:
                logged = json.loads(line)
            except ValueError:
                yield "an error in a line that was torn"
                continue
            at_ms = _ms(logged["time"])
            felt_ms = math.inf if logged["message"] == NO_JVM else LOST_JVM_MS
            if not any(fault.began_ms <= at_ms <= fault.ended_ms + felt_ms for fault in lost):
                yield f"{logged['level']} of {logged['logger']} at {logged['time']}: {logged['message']}"


def _ms(time: str) -> float:
    return datetime.fromisoformat(time).timestamp() * 1000
