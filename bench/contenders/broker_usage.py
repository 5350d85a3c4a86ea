"""The broker seen from outside: its process, and what its topics take on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

OFFSETS_TOPIC: Final = "__consumer_offsets"
DIRECTORIES: Final = "log.dirs="


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of this machine.

    Attributes:
        pid: its process id.
        data: where its partitions' folders are.
    """

    pid: int
    data: Path

    @staticmethod
    def at(kafka: str) -> Broker:
        """Find the broker that listens at an address of this machine.

        Raises:
            LookupError: no process of ours does, or it wasn't started with a file of properties that names its folder.
        """
        port = int(kafka.partition(",")[0].rpartition(":")[2])
        for process in psutil.process_iter():
            if _listens(process, port):
                return Broker(process.pid, _data_folder(process))
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


def _data_folder(process: psutil.Process) -> Path:
    properties = Path(process.cmdline()[-1])
    for line in properties.read_text("utf-8").splitlines():
        if line.startswith(DIRECTORIES):
            return Path(line.removeprefix(DIRECTORIES))
    raise LookupError(f"{properties} says nothing of {DIRECTORIES}")
