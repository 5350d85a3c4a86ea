"""The wall clock of one host, to be stepped while processes run on it."""

from __future__ import annotations

import os
import struct
from pathlib import Path

SHIFTING = Path(__file__).with_name("shifted_clock")


class HostClock:
    """The clock that Python processes with this `environment` read; see ``shifted_clock/sitecustomize.py``."""

    def __init__(self, file: Path) -> None:
        """Begin with the right time.

        Args:
            file: to be made; it holds by how much the clock is off.
        """
        self._file = file
        self.step_to(0.0)

    @property
    def environment(self) -> dict[str, str]:
        """What puts a process on this host."""
        return {"SHIFTED_CLOCK": str(self._file), "PYTHONPATH": f"{SHIFTING}{os.pathsep}{os.environ['PYTHONPATH']}"}

    def step_to(self, offset_s: float) -> None:
        """Put the clock forward of the right time, or back, s; running processes see it at once."""
        with self._file.open("r+b" if self._file.exists() else "wb") as file:
            file.write(struct.pack("d", offset_s))
