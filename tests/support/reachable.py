"""Folders that the account of an embedded Postgres may enter."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def reachable(tmp_path: Path) -> Path:
    """Let the unprivileged account through pytest's private folders when the tests run as root."""
    if os.geteuid() == 0:
        # pytest's own lie within the system's folder for temporary files, which everybody may enter.
        for folder in (tmp_path, *tmp_path.parents):
            if folder == Path(tempfile.gettempdir()).resolve() or folder == Path(folder.root):
                break
            folder.chmod(folder.stat().st_mode | 0o111)
    return tmp_path
