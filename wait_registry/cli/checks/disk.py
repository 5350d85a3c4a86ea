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
LITTLE_BYTES: Final = GIB
TOO_LITTLE_BYTES: Final = 100 * MIB
_MOVE: Final = 'set "spark.local.dir" in [spark.conf] to another folder'


def spark(settings: Settings) -> Iterator[Diagnosis]:
    """Look at the folders in which Spark spills and shuffles (spark.local.dir, SPARK_LOCAL_DIRS, the temporary one)."""
    given = os.environ.get("SPARK_LOCAL_DIRS") or settings.spark.conf.get("spark.local.dir") or tempfile.gettempdir()
    for folder in given.split(","):
        yield _line(Path(folder.strip()))


def _line(folder: Path) -> Diagnosis:
    # It is created at the first start.
    there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    if not there.is_dir():
        return error(f"{there} is not a folder", _MOVE)
    if not os.access(there, os.W_OK | os.X_OK):
        return error(f"{there} can't be written to", f"chown it to this user, or {_MOVE}")
    return judged(str(folder), shutil.disk_usage(there).free)


def judged(folder: str, free_bytes: int) -> Diagnosis:
    """Warn below 1 GiB, and refuse below 100 MiB."""
    shown = f"{free_bytes / GIB:.1f} GiB" if free_bytes >= GIB else f"{free_bytes / MIB:.0f} MiB"
    seen = f"{shown} free in {folder}"
    if free_bytes >= LITTLE_BYTES:
        return ok(seen)
    fix = f"free space there, or {_MOVE}"
    if free_bytes >= TOO_LITTLE_BYTES:
        return warning(f"{seen}, less than 1 GiB", fix)
    return error(f"{seen}, less than 100 MiB", fix)
