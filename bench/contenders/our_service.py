"""One of our services as a user runs it, and its CPU time and memory as /proc shows them."""

from __future__ import annotations

import http.client
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from bench.contenders.process_usage import memory_of
from bench.harness.process import BYTES_PER_MB, Child, ProcessError, started
from bench.harness.row import Bench
from wait_registry.demo.environment import PREFIX, as_environment
from wait_registry.local.guard import process_tree
from wait_registry.local.ports import LOOPBACK, free_ports
from wait_registry.settings.root import Settings

READY_S: Final = 120.0
STOP_S: Final = 60.0
POLL_S: Final = 0.02


class Service:
    """One running service; its driver is two processes, Python and the JVM of Spark."""

    def __init__(self, child: Child, port: int) -> None:
        self._child = child
        self._port = port

    def await_ready(self, deadline_s: float = READY_S) -> None:
        """Wait until /health/ready says yes: the first batch, be it empty, has been written.

        Raises:
            ProcessError: it ended, or took longer.
        """
        self.wait_for(self._is_ready, "to be ready", deadline_s)

    def wait_for(self, done: Callable[[], bool], what: str, deadline_s: float, poll_s: float = POLL_S) -> None:
        """Look again and again until something is so.

        Raises:
            ProcessError: the service ended meanwhile, or it took longer.
        """
        deadline = time.monotonic() + deadline_s
        while not done():
            self.require_running()
            if time.monotonic() > deadline:
                raise ProcessError(f"{self._child.name} took over {deadline_s:g} s {what}{self._child.last_words()}")
            time.sleep(poll_s)

    def require_running(self) -> None:
        """Raise ProcessError when it has ended."""
        status = self._child.process.poll()
        if status is not None:
            raise ProcessError(f"{self._child.name} ended with status {status}{self._child.last_words()}")

    def cpu_s(self) -> float:
        """Return the CPU time that Python and JVM have used, user and system, all threads, s."""
        return cpu_s_of_all(process_tree(self._child.pid))

    def peak_mb(self) -> dict[str, float]:
        """Return the most resident memory that JVM and Python have had (VmHWM), MB of 10^6 bytes, and the sum.

        What has ended counts no more; pages that Spark's Python workers share count once for each.
        """
        peaks = {"jvm_peak_mb": 0.0, "python_peak_mb": 0.0}
        for process in process_tree(self._child.pid):
            with suppress(psutil.NoSuchProcess, OSError, KeyError):  # one that has ended has no memory
                kind = "jvm_peak_mb" if Path(process.exe()).name == "java" else "python_peak_mb"
                peaks[kind] += memory_of(process.pid)[1] / BYTES_PER_MB
        return {**peaks, "driver_peak_mb": sum(peaks.values())}

    def stop(self) -> None:
        """Ask it to end (SIGTERM) and wait; raises ProcessError when it doesn't, or ends with an error."""
        status = self._child.terminate(STOP_S)
        if status != 0:
            raise ProcessError(f"{self._child.name} ended with status {status}{self._child.last_words()}")

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection(LOOPBACK, self._port, timeout=5)
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


@contextmanager
def running(bench: Bench, command: str, settings: Settings) -> Iterator[Service]:
    """Start a service; it isn't ready yet. When the block is left, however, all of its processes are gone.

    Args:
        bench: of the turn.
        command: `sink` or `sweeper`.
        settings: all of the service's settings: nothing else of this host enters them.
    """
    (port,) = free_ports(1)
    variables = {**as_environment(settings), f"{PREFIX}TELEMETRY__PORT": str(port)}
    arguments = [sys.executable, "-m", "wait_registry", command]
    with started(arguments, bench.directory, {**variables, **scratch(bench.directory)}, name=command) as child:
        yield Service(child, port)


def cpu_s_of_all(processes: Iterable[psutil.Process]) -> float:
    """Return the CPU time that processes have used, user and system, all threads, s; those that ended count no more."""
    used_s = 0.0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            used_s += sum(process.cpu_times()[:2])
    return used_s


def scratch(directory: Path) -> dict[str, str]:
    """Return the variables that keep the temporary files of Python and Spark within a folder."""
    folder = directory / "scratch"
    folder.mkdir(exist_ok=True)
    inherited = os.environ.get("SPARK_SUBMIT_OPTS", "")
    return {"TMPDIR": str(folder), "SPARK_SUBMIT_OPTS": f"{inherited} -Djava.io.tmpdir={folder}".strip()}
