"""Folders that the account of an embedded Postgres may enter."""

from __future__ import annotations

import os
from pathlib import Path


def reachable(tmp_path: Path) -> Path:
    """Let the unprivileged account through pytest's private folders when the tests run as root."""
    if os.geteuid() == 0:
        for folder in (tmp_path, *tmp_path.parents[:2]):
            folder.chmod(folder.stat().st_mode | 0o111)
    return tmp_path
