"""How processes ended, and the tracebacks in their logs: what of that must not be."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
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
    found = []
    for service in company:
        lines = service.log.read_text("utf-8", "replace").splitlines() if service.log.exists() else []
        found += [
            f"exit {service.name}: {ended.cause}, with status {ended.status}, and no fault that was felt explains it"
            for ended in service.exits
            if not _is_expected(ended, faults, kinds.count(service.kind) > 1, lines)
        ]
        found += [f"traceback in {service.log}: {what}" for what in _tracebacks(service.name, lines, faults)]
    return found


def _is_expected(ended: Exit, faults: Sequence[FaultDone], has_standby: bool, lines: Sequence[str]) -> bool:
    """Return whether a process may have ended as it did.

    A service that is stopped (SIGTERM) ends with 0; before it has opened its port the signal itself may end it, as any
    program. Otherwise processors and sweepers wait out every fault, except a processor whose client has forgotten all
    brokers after an outage. A sink ends when it has lost its JVM. Its lock is a session of Postgres: if that ends,
    another sink takes it.
    """
    if ended.cause is Cause.KILLED or (ended.cause is not Cause.ITSELF and ended.status == 0):
        return True
    if ended.cause is Cause.ASKED_EARLY and ended.status == BY_SIGTERM:
        return True
    for fault in faults:
        after_ms = ended.at_ms - fault.ended_ms
        if fault.began_ms > ended.at_ms:
            continue
        if ended.name.startswith("sink") and after_ms <= AFTERMATH_MS:
            lost_jvm = ended.status == FAILED and fault.name == "kill_jvm" and fault.target == ended.name
            if lost_jvm or (ended.status == FENCED and has_standby and fault.target in (ended.name, "postgres")):
                return True
        if hits(fault, *BROKER) and after_ms <= FORGOTTEN_MS:
            said = (_ms(json.loads(line)["time"]) for line in lines if FORGOTTEN in line)
            if any(0 <= ended.at_ms - at_ms <= DRAINED_MS for at_ms in said):
                return True
    return False


def _tracebacks(name: str, lines: Sequence[str], faults: Sequence[FaultDone]) -> Iterator[str]:
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
            felt_ms = math.inf if logged["message"] == NO_JVM else LOST_JVM_MS
            if not any(fault.began_ms <= _ms(logged["time"]) <= fault.ended_ms + felt_ms for fault in lost):
                yield f"{logged['level']} of {logged['logger']} at {logged['time']}: {logged['message']}"


def _ms(time: str) -> float:
    return datetime.fromisoformat(time).timestamp() * 1000
