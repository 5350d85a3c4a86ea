"""A copy of the checkout in which faults are planted, so that nothing of the checkout itself is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Installed under these names, so that the copy's SQL and checksums are found before the checkout's.
RESOURCE_PACKAGES = {"wait_registry_sql": "sql", "wait_registry_jvm": "jvm"}


@contextmanager
def scratch_copy() -> Iterator[Path]:
    """Copy what git tracks, or would track; jars come by a link. The copy is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="waitreg-mutant-") as folder:
        copy = Path(folder).resolve()
        for name in _files():
            source, target = ROOT / name, copy / name
            if source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
        for package, directory in RESOURCE_PACKAGES.items():
            (copy / package).symlink_to(copy / directory)
        (copy / "jvm" / "jars").symlink_to(ROOT / "jvm" / "jars")
        yield copy


def environment_of(copy: Path) -> dict[str, str]:
    """Return this process's environment, but everything imports the copy: tests, services, Spark's workers."""
    return os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "300"}


def _files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in listed.stdout.split("\0") if name]
