"""A mutant is a function that removes one safeguard of the product by monkeypatching."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

VARIABLE: Final = "PLANTED_MUTANT"
PLANTING: Final = Path(__file__).with_name("planting")
ROOT: Final = Path(__file__).parents[2]
MODULES: Final = ("processor", "library", "sink", "sweeper", "redrive", "connect")

Plant = Callable[[pytest.MonkeyPatch], None]
_known: dict[str, Mutant] = {}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted change: its name, the clause that it breaks, what goes wrong then, and the function that plants it."""

    name: str
    clause: str
    breaks: str
    plant: Plant


def mutant(clause: str) -> Callable[[Plant], Plant]:
    """Register a function as the mutant of a clause; its name and its docstring are the mutant's."""

    def registered(plant: Plant) -> Plant:
        name = plant.__name__
        if name in _known:
            raise ValueError(f"two mutants are called {name}")
        _known[name] = Mutant(name, clause, plant.__doc__ or "", plant)
        return plant

    return registered


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Return every mutant."""
    for module in MODULES:
        import_module(f"tests.mutants.{module}")
    return tuple(_known.values())


def plant_chosen() -> None:
    """Plant the mutant that the environment names, if it names one; KeyError if there is none of that name."""
    if name := os.environ.get(VARIABLE):
        by_name = {mutant.name: mutant for mutant in all_mutants()}
        by_name[name].plant(pytest.MonkeyPatch())


def planted(mutant: Mutant) -> dict[str, str]:
    """Return the variables with which every Python process of a run plants a mutant before it imports the product."""
    return {VARIABLE: mutant.name, "PYTHONPATH": f"{PLANTING}{os.pathsep}{ROOT}"}


def changes_query(patch: pytest.MonkeyPatch, file: str, name: str, old: str, new: str) -> None:
    """Change a part of a named query."""
    from wait_registry.postgres.queries import Queries

    text = Queries(file)[name]
    assert old in text, f"the query {name} has no {old!r}"
    original = Queries.__getitem__

    def changed(self: Queries, asked: str) -> str:
        found = original(self, asked)
        return found.replace(old, new) if found == text else found

    patch.setattr(Queries, "__getitem__", changed)
