"""Check the disk space and permissions where Spark keeps its scratch files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.settings.root import Settings

GIB: Final = 1 << 30
MIB: Final = 1 << 20
_MOVE: Final = 'set "spark.local.dir" in [spark.conf] to another folder'


def spark(settings: Settings) -> Iterator[Diagnosis]:
    """Look at the folders in which Spark spills and shuffles (spark.local.dir, SPARK_LOCAL_DIRS, the temporary one)."""
    given = os.environ.get("SPARK_LOCAL_DIRS") or settings.spark.conf.get("spark.local.dir") or tempfile.gettempdir()
    for folder in (Path(name.strip()).absolute() for name in given.split(",")):
        # It is created at the first start.
        there = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if os.access(there, os.W_OK | os.X_OK):
            yield judged(str(folder), shutil.disk_usage(there).free)
        else:
            yield error(f"{there} can't be written to", f"chown it to this user, or {_MOVE}")


def judged(folder: str, free_bytes: int) -> Diagnosis:
    """Warn below 1 GiB, and refuse below 100 MiB."""
    seen = f"{free_bytes // MIB:,} MiB free in {folder}"
    if free_bytes >= GIB:
        return ok(seen)
    return (error if free_bytes < 100 * MIB else warning)(f"{seen}, less than 1 GiB", f"free space there, or {_MOVE}")
