"""The health check that the images carry, against a server that answers one or the other."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from wait_registry.local.ports import free_ports

SCRIPT = Path(__file__).parents[3] / "deploy" / "compose" / "healthy.py"


@contextmanager
def answering(status: int, body: bytes) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health/ready" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def check(port: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-IS", str(SCRIPT)],
        env={"WAITREG_TELEMETRY__PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_only_a_service_that_is_ready_is_healthy(status: int, code: int) -> None:
    with answering(status, b'{"reasons": ["starting"]}') as port:
        done = check(port)
    assert done.returncode == code
    assert "starting" in done.stdout


def test_no_answer_is_not_healthy() -> None:
    (port,) = free_ports(1)
    done = check(port)
    assert done.returncode == 1
    assert "no answer" in done.stdout
