"""Whether processes stand still, the proof of a SIGSTOP: on a busy machine it takes a moment."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psutil

WITHIN_S = 10.0
LOOK_S = 0.02


def stopped(processes: Sequence[psutil.Process]) -> str:
    """Wait until all of them are stopped (state T) and say so; empty when they don't stop, or there are none."""
    deadline = time.monotonic() + WITHIN_S
    while (states := [_state(process) for process in processes]) and time.monotonic() < deadline:
        alive = [state for state in states if state not in (psutil.STATUS_ZOMBIE, "")]
        if alive and set(alive) == {psutil.STATUS_STOPPED}:
            return f"{len(alive)} processes were stopped"
        time.sleep(LOOK_S)
    return ""


def _state(process: psutil.Process) -> str:
    try:
        return str(process.status())
    except psutil.NoSuchProcess:
        return ""
