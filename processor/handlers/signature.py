"""Whether a function can be a handler, found out before the first record."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from wait_registry.errors import ConfigurationError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def is_asynchronous(function: Callable[..., Any]) -> bool:
    """Return whether calling it makes a coroutine (an ``async def``, or an object whose ``__call__`` is one)."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def require_one_parameter(name: str, function: Callable[..., Any]) -> None:
    """Refuse a function that can't be called with the record alone.

    Args:
        name: how the settings name it.
        function: the user's function or bound method.

    Raises:
        ConfigurationError: it needs another number of arguments; mend the handler.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C don't tell
        return
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    takes_one = any(p.kind in _POSITIONAL or p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) > 1 or not takes_one or any(p.kind is p.KEYWORD_ONLY for p in required):
        seen = ", ".join(p.name for p in required) or "none"
        raise ConfigurationError(
            f"handler {name!r} takes {len(required)} parameter{'' if len(required) == 1 else 's'} ({seen}); "
            "expected one, the record: def handle(record)"
        )
