"""A server that isn't part of this project, as a process of the test's own."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import wait_until
from waitreg.local.child import GuardedChild, Program, log_tail


@contextmanager
def server_process(
    name: str,
    command: Sequence[str],
    folder: Path,
    url: str,
    deadline_s: float = 60,
    environment: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Run a server until the end of the block, which begins when the server is up.

    Args:
        name: of its log, and in messages.
        command: starts it.
        folder: its current directory, where its log is.
        url: answers with 200 when the server is up.
        deadline_s: how long it may take until it is up, s.
        environment: variables beyond those of the test.
    """
    log = folder / f"{name}.log"
    child = GuardedChild(Program(command, log, folder, environment or {}))

    def is_up() -> bool:
        assert child.exit_status is None, f"{name} ended:\n{log_tail(log, 30)}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    try:
        wait_until(is_up, deadline_s, f"readiness of {name}")
        yield
    finally:
        child.kill()
