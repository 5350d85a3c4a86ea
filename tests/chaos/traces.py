"""Tracebacks in the logs of a run: errors that nobody foresaw. What is foreseen is told in a line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from tests.chaos.history.history import FaultDone

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
