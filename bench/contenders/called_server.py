"""The service that row 10's contenders call: `java/CalledServer.java`, on Vert.x, in a process of its own."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bench.contenders.java_programs import java_program
from bench.harness.process import Child, started
from bench.harness.row import Bench
from waitreg.local.ports import LOOPBACK, free_ports

START_S: Final = 30.0
POLL_S: Final = 0.05


class CalledServer:
    """A running server that speaks HTTP/1.1, and gRPC without TLS, on one port."""

    def __init__(self, child: Child, port: int) -> None:
        self._child = child
        self.url = f"http://{LOOPBACK}:{port}/"
        self.grpc_address = f"grpc://{LOOPBACK}:{port}"

    def answered(self) -> int:
        """Return how many calls it has answered."""
        self._child.require_running()
        with urllib.request.urlopen(self.url, timeout=START_S) as answer:
            return int(answer.read())

    def await_start(self) -> None:
        """Wait until it answers; raises ProcessError if it ended or takes longer."""
        deadline = time.monotonic() + START_S
        while True:
            try:
                self.answered()
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise self._child.error(f"took over {START_S:g} s to start") from None
                time.sleep(POLL_S)


@contextmanager
def called_server(bench: Bench, delay_ms: int) -> Iterator[CalledServer]:
    """Start a server whose answers take so long."""
    (port,) = free_ports(1)
    command = java_program(bench, "CalledServer", str(port), str(delay_ms))
    with started(command, bench.directory, name="server") as child:
        server = CalledServer(child, port)
        server.await_start()
        yield server
