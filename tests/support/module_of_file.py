"""A Python file outside of any package, as a module."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def load_module(file: Path) -> ModuleType:
    """Run a file as a module, without leaving its folder on this run's path."""
    spec = importlib.util.spec_from_file_location(f"{file.stem}_of_a_test", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
