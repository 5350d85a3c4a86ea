"""Garbage collection in processes that create and drop many objects without cycles."""

from __future__ import annotations

import gc
from typing import Final

# Measured 1.15x in a processor, and a fifth of the CPU of an export.
THRESHOLDS: Final = (50_000, 20, 50)


def tune_gc() -> None:
    """Freeze start-up objects (modules, settings, clients) and raise the GC thresholds; once per process."""
    if gc.get_threshold() == THRESHOLDS:
        return
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
