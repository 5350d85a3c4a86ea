"""The broker seen from outside: its process, and what its topics take on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

DIRECTORIES: Final = "log.dirs="


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of this machine: its process ID, and where its partitions' folders are."""

    pid: int
    data: Path

    @staticmethod
    def at(kafka: str) -> Broker:
        """Find the broker that listens at an address of this machine."""
        port = int(kafka.partition(",")[0].rpartition(":")[2])
        for process in psutil.process_iter():
            if _listens(process, port):
                lines = Path(process.cmdline()[-1]).read_text("utf-8").splitlines()
                data = next(line.removeprefix(DIRECTORIES) for line in lines if line.startswith(DIRECTORIES))
                return Broker(process.pid, Path(data))
        raise LookupError(f"no process that can be seen listens on port {port}: is the broker another machine's?")

    def topic_bytes(self, topic: str) -> int:
        """Return what a topic's segments hold, all partitions, without their indexes (preallocated, and small)."""
        folders = [folder for folder in self.data.iterdir() if folder.name.rpartition("-")[0] == topic]
        return sum(file.stat().st_size for folder in folders for file in folder.glob("*.log"))


def _listens(process: psutil.Process, port: int) -> bool:
    try:
        sockets = process.net_connections("tcp")
    except (psutil.AccessDenied, psutil.NoSuchProcess):
        return False
    return any(socket.status == psutil.CONN_LISTEN and socket.laddr.port == port for socket in sockets)
