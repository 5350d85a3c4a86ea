"""A server that isn't part of this project, as a process of the test's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import wait_until
from wait_registry.local.child import log_tail


@contextmanager
def server_process(
    name: str,
    command: Sequence[str],
    folder: Path,
    is_up: Callable[[], bool],
    deadline_s: float = 60,
    environment: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Run a server until the end of the block, which begins when the server is up.

    Args:
        name: of its log, and in messages.
        command: starts it.
        folder: its current directory, where its log is.
        is_up: asked again and again.
        deadline_s: how long it may take until it is up, s.
        environment: variables beyond those of the test.
    """
    log = folder / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )

    def ready() -> bool:
        assert process.poll() is None, f"{name} ended:\n{log_tail(log, 30)}"
        return is_up()

    try:
        wait_until(ready, deadline_s, f"readiness of {name}")
        yield
    finally:
        process.kill()
        process.wait()
