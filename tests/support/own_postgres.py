"""A Postgres of one test alone, in a folder that its account can reach."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from wait_registry.local.ports import free_ports
from wait_registry.local.postgres import EmbeddedPostgres


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
        server.remove_data()
        if directory is None:
            shutil.rmtree(folder, ignore_errors=True)
