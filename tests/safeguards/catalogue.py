"""The catalogue of safeguards: each entry is a function that removes one safeguard from the product.

An entry says by its decorator which clause breaks without the safeguard, and what shows that:

- *real tests*: the tests that are marked with the clause; one of them must fail (`python -m tests.safeguards.run`);
- *seeds* and a small *world* of the simulation, which must break a guarantee (`tests/simulation/test_safeguards.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Final
from uuid import uuid4

import pytest

VARIABLE: Final = "REMOVED_SAFEGUARD"
PLANTING: Final = Path(__file__).with_name("planting")
ROOT: Final = Path(__file__).parents[2]
AREAS: Final = ("engine", "dispatch", "processor", "sink", "sweeper", "redrive", "library", "connect")
NOTHING: Final = "nothing breaks"
NEVER_ENDS: Final = "never ends"

Change = Callable[..., Any]


class Patch:
    """Changes the product for as long as a monkeypatch lasts; names are dotted, so that nothing is imported early.

    Args:
        monkeypatch: undoes the changes.
        own_name: names the process that asks; the simulation names its own.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, own_name: Callable[[], str] | None = None) -> None:
        self._monkeypatch = monkeypatch
        self.own_name = own_name or (lambda: uuid4().hex)

    def replace(self, target: str, value: Any, raising: bool = True) -> None:
        """Replace what a dotted name means; what a module defines, also where it was imported already."""
        place, _, name = target.rpartition(".")
        original = getattr(resolve_name(place), name, None)
        self._monkeypatch.setattr(resolve_name(place), name, value, raising=raising)
        if getattr(original, "__module__", None) == place:
            for module in list(sys.modules.values()):
                if getattr(module, "__dict__", {}).get(name) is original:
                    self._monkeypatch.setattr(module, name, value)

    def around(self, target: str) -> Callable[[Change], None]:
        """Call the decorated function instead of another one, or of a property's, which is its first argument."""
        original = resolve_name(target)

        def changes(change: Change) -> None:
            if isinstance(original, property):
                self.replace(target, property(lambda owner: change(original.fget, owner)))
            else:
                self.replace(target, lambda *given, **named: change(original, *given, **named))

        return changes

    def query(self, file: str, name: str, old: str, new: str) -> None:
        """Change a part of a named query."""
        text = resolve_name("wait_registry.postgres.queries.Queries")(file)[name]
        assert old in text, f"the query {name} has no {old!r}"

        @self.around("wait_registry.postgres.queries.Queries.__getitem__")
        def changed(original, queries, asked):
            found = original(queries, asked)
            return found.replace(old, new) if found == text else found


@dataclass(frozen=True, slots=True)
class Safeguard:
    """One entry.

    Attributes:
        name: of the safeguard.
        without: what goes wrong without it, a sentence.
        reason: why it stays although nothing breaks in the simulation.
        clause: of tests/guarantees.toml, which the product keeps by it.
        breaks: what seeds and world say is broken, or `NOTHING`.
        remove_from: removes it.
        real: whether a test that is marked with the clause fails without it.
        seeds: whether a seed of the processor's simulation breaks without it.
        first: the first seed to try, where only one in thousands breaks.
        world: makes the smallest world that needs it, from `tests.simulation.removal_worlds`.
    """

    name: str
    without: str
    reason: str
    clause: str
    breaks: tuple[str, ...]
    remove_from: Callable[[Patch], None]
    real: bool
    seeds: bool = False
    first: int = 0
    world: Callable[[Any], Any] | None = None

    def remove(self, monkeypatch: pytest.MonkeyPatch, own_name: Callable[[], str] | None = None) -> None:
        """Remove it for as long as the monkeypatch lasts."""
        self.remove_from(Patch(monkeypatch, own_name))

    def breaks_as_said(self, broken: str) -> bool:
        """Return whether removing it broke what its entry says."""
        return any(said in (broken or NOTHING) for said in self.breaks)


_known: dict[str, Safeguard] = {}


def safeguard(clause: str, *breaks: str, at: str = "", **shown_by: Any) -> Callable[[Change], Change]:
    """Enter a function ``without_x`` into the catalogue as the safeguard ``x``.

    The first line of its docstring says what goes wrong without it, the others are the reason. Without ``breaks``, the
    clause's guarantee breaks.

    Args:
        clause: as in `Safeguard`.
        breaks: as in `Safeguard`.
        at: the function of the product that the decorated one is called around, as by `Patch.around`; else the
            decorated one takes a `Patch`.
        shown_by: ``real``, ``seeds``, ``first`` and ``world`` of `Safeguard`; without any of them ``real`` is set.
    """

    def entered(function: Change) -> Change:
        def remove_from(patch: Patch) -> None:
            if at:
                patch.around(at)(function)
            else:
                function(patch)

        name = function.__name__.removeprefix("without_")
        if name in _known:
            raise ValueError(f"two safeguards are called {name}")
        without, _, reason = (function.__doc__ or "").partition("\n")
        said = breaks or (clause.partition(".")[0],)
        shown = {"real": not shown_by, **shown_by}
        _known[name] = Safeguard(name, without, reason.strip(), clause, said, remove_from, **shown)
        return function

    return entered


@cache
def all_safeguards() -> tuple[Safeguard, ...]:
    """Return the catalogue."""
    for area in AREAS:
        import_module(f"tests.safeguards.{area}")
    return tuple(_known.values())


def remove_chosen() -> None:
    """Remove the safeguard that the environment names, if it names one; KeyError if there is none of that name."""
    if name := os.environ.get(VARIABLE):
        {each.name: each for each in all_safeguards()}[name].remove(pytest.MonkeyPatch())


def removed(chosen: Safeguard) -> dict[str, str]:
    """Return the variables with which every Python process of a run removes it before it imports the product."""
    return {VARIABLE: chosen.name, "PYTHONPATH": f"{PLANTING}{os.pathsep}{ROOT}"}
