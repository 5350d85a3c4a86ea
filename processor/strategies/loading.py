"""From the setting ``processor.strategy`` to the strategy's file."""

from __future__ import annotations

import difflib
import importlib
import pkgutil

import processor.strategies
from processor.strategies.protocol import Build
from wait_registry.errors import ConfigurationError

_NOT_STRATEGIES = {"protocol", "loading"}


def strategy_names() -> list[str]:
    """Return the names of all strategies: the files of this folder."""
    return sorted({module.name for module in pkgutil.iter_modules(processor.strategies.__path__)} - _NOT_STRATEGIES)


def load_strategy(name: str) -> Build:
    """Return the ``build`` function of a strategy.

    Raises:
        ConfigurationError: there is none of that name; the message has the nearest one.
    """
    names = strategy_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigurationError(f"processor.strategy is {name!r}, expected one of {', '.join(names)}{hint}")
    build: Build = importlib.import_module(f"processor.strategies.{name}").build
    return build
