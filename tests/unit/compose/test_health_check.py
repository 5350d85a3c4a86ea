"""The health check that the images carry, asked of a real telemetry port."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wait_registry.local.ports import free_ports
from wait_registry.telemetry.exposition import MetricsRegistry
from wait_registry.telemetry.health import Health
from wait_registry.telemetry.server import TelemetryServer

SCRIPT = Path(__file__).parents[3] / "deploy" / "compose" / "healthy.py"


def check(port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-IS", str(SCRIPT), *arguments],
        env={"WAITREG_TELEMETRY__PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("reasons", [[], ["starting"]])
def test_only_a_service_that_is_ready_is_healthy(reasons: list[str]) -> None:
    ready = lambda: Health.of(reasons)  # noqa: E731
    with TelemetryServer("127.0.0.1", 0, MetricsRegistry(), live=lambda: Health(True), ready=ready) as server:
        done = check(server.port)
    assert done.returncode == len(reasons)
    assert all(reason in done.stdout for reason in reasons)


def test_an_argument_names_the_port() -> None:
    nothing, other = free_ports(2)
    assert f"no answer on port {other}" in check(nothing, str(other)).stdout


def test_no_answer_is_not_healthy() -> None:
    (port,) = free_ports(1)
    done = check(port)
    assert done.returncode == 1
    assert "no answer" in done.stdout
