"""One run of pytest by the programs that change the product and ask which test finds the change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event

POLL_S = 0.2


def run_pytest(
    arguments: Sequence[str], folder: Path, variables: Mapping[str, str], limit_s: float, stopped: Event | None = None
) -> tuple[int | None, str]:
    """Run pytest in a process group of its own, which is killed at the end.

    Args:
        arguments: of pytest.
        folder: the checkout.
        variables: of the environment, in addition to this process's.
        limit_s: how long it may take, s.
        stopped: ends the run when it is set.

    Returns:
        The exit status, None if the run was killed, and the output.
    """
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "--tb=short", "-p", "no:cacheprovider"]
    # A file, since a server that a killed run leaves would keep a pipe open.
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [*command, "--hypothesis-profile=verdict", *arguments],
            cwd=folder,
            env={**os.environ, "COLUMNS": "300", **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        deadline = time.monotonic() + limit_s
        try:
            while time.monotonic() < deadline and not (stopped is not None and stopped.is_set()):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
                    break
        finally:
            status = process.poll()
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return status, output.read()
