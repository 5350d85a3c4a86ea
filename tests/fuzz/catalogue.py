"""All targets, by name."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from tests.fuzz import targets
from tests.fuzz.target import Target


def target_names() -> list[str]:
    """Return the names; a target's module bears its name."""
    return sorted(module.name for module in pkgutil.iter_modules(targets.__path__))


@cache
def target_of(name: str) -> Target:
    """Import a target."""
    target: Target = importlib.import_module(f"tests.fuzz.targets.{name}").TARGET
    assert target.name == name, target.name
    return target
