"""All breaches: importing a file adds its own to the list."""

from tests.unit.chaos.breaches import (
    bounds,
    changes,
    commits,
    decisions,
    exports,
    false_exports,
    loss,
    order,
    tables,
    views,
)
from tests.unit.chaos.breaches.planting import BREACHES, Breach

__all__ = [
    "BREACHES",
    "Breach",
    "bounds",
    "changes",
    "commits",
    "decisions",
    "exports",
    "false_exports",
    "loss",
    "order",
    "tables",
    "views",
]
