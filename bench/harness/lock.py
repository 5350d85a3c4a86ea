"""One benchmark at a time: two at once would measure each other."""

from __future__ import annotations

import fcntl
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path


class BusyError(RuntimeError):
    """Another benchmark runs; the message says which."""


def lock_file() -> Path:
    """Return the lock of this user's benchmarks, in whichever checkout they run."""
    return Path(tempfile.gettempdir()) / f"waitreg-bench-{os.getuid()}.lock"


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Hold the lock while the block runs; the system frees it when the process ends, however it does.

    Raises:
        BusyError: another process holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 1000).decode("utf-8", errors="replace").strip() or "unknown"
            raise BusyError(f"another benchmark is running ({holder}): wait for it, or end it") from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, _who().encode())
        yield
    finally:
        os.close(descriptor)


def _who() -> str:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return f"process {os.getpid()} since {since}, `{shlex.join(sys.argv)}`"
