"""Scratch folders of streaming queries, and what killed processes left of them."""

from __future__ import annotations

import hashlib
import logging
import shutil
import socket
import tempfile
from pathlib import Path

from sink.progress import Connection
from wait_registry.postgres.connection import schema_of

log = logging.getLogger(__name__)


def scratch_prefix(connection: Connection, topic: str, stream: str) -> str:
    """Return how the names of one stream's folders begin; no other sink's begin so, even in the same directory.

    Schema and wait topic are what the sink's lock is on, but it holds within a database only: so that and this host
    are part of the name too.
    """
    info = connection.info
    parts = (socket.gethostname(), info.host, str(info.port), info.dbname, schema_of(connection), topic)
    return f"waitreg-sink-{stream}-{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:16]}-"


def make_scratch(directory: str, prefix: str) -> Path:
    """Make a folder in ``directory`` (the system's temporary one when empty), and remove those that were left there.

    The caller holds the stream's lock: a folder with this prefix belongs to a query of its own that has ended.
    """
    parent = Path(directory or tempfile.gettempdir())
    parent.mkdir(parents=True, exist_ok=True)
    for left in parent.iterdir():
        if left.name.startswith(prefix):
            log.info("removing %s, which an earlier run left", left)
            shutil.rmtree(left, ignore_errors=True)
    return Path(tempfile.mkdtemp(prefix=prefix, dir=parent)).absolute()
