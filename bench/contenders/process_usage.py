"""What a process has used, as Linux tells of each. Standard library only: imported in the peers' environment too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

NS_PER_S: Final = 1_000_000_000
TICK_NS: Final = NS_PER_S // os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat behind the name, which ends with the last bracket: utime and stime.
UTIME, STIME = 11, 12


def cpu_ns_of(pid: int) -> int:
    """Return the processor time of a process so far, user and system, all threads; to the nearest tick (10 ms)."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return (int(fields[UTIME]) + int(fields[STIME])) * TICK_NS


def memory_of(pid: int | str = "self") -> tuple[int, int]:
    """Return what a process holds in memory now, and what it held at most, bytes."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").splitlines()
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    return _kilobytes(values["VmRSS"]) * 1024, _kilobytes(values["VmHWM"]) * 1024


def _kilobytes(text: str) -> int:
    return int(text.split()[0])
