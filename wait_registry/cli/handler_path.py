"""Where handlers are imported from: the current directory first, as with `python -m`."""

from __future__ import annotations

import sys
from pathlib import Path


def make_handlers_importable() -> None:
    """Put the current directory on the import path, where the installed script `waitreg` leaves it out."""
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
