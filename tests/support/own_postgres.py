"""A Postgres of one test alone, and folders that its account can enter."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from waitreg.local.ports import free_ports
from waitreg.local.postgres import EmbeddedPostgres


@contextmanager
def own_postgres(
    directory: Path | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[EmbeddedPostgres]:
    """Start a server, and end it with its data.

    Args:
        directory: its folder; a temporary one when None.
        settings: further server settings.
    """
    folder = directory or Path(tempfile.mkdtemp(prefix="waitreg-postgres-"))
    folder.chmod(0o755)  # as root, Postgres runs under another account
    server = EmbeddedPostgres(folder / "postgres", free_ports(1)[0], settings={"fsync": "off", **(settings or {})})
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(server.directory, ignore_errors=True)
        if directory is None:
            shutil.rmtree(folder, ignore_errors=True)


def reachable(tmp_path: Path) -> Path:
    """Let the unprivileged account through pytest's private folders when the tests run as root."""
    if os.geteuid() == 0:
        # pytest's own lie within the system's folder for temporary files, which everybody may enter.
        for folder in (tmp_path, *tmp_path.parents):
            if folder == Path(tempfile.gettempdir()).resolve() or folder == Path(folder.root):
                break
            folder.chmod(folder.stat().st_mode | 0o111)
    return tmp_path
