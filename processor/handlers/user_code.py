"""What is found out about the user's own code: whether it can be a handler, and where its exception was raised."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from wait_registry.errors import ConfigurationError

OURS = Path(__file__).parents[1]
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def is_asynchronous(function: Callable[..., Any]) -> bool:
    """Return whether calling it makes a coroutine (an ``async def``, or an object whose ``__call__`` is one)."""
    return any(map(inspect.iscoroutinefunction, _called(function)))


def require_no_generator(name: str, function: Callable[..., Any]) -> None:
    """Refuse a generator function, since calling it runs none of its code.

    Args:
        name: how the settings name it.
        function: the user's function or bound method.

    Raises:
        ConfigurationError: it has a ``yield``; fix the handler.
    """
    if any(inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each) for each in _called(function)):
        raise ConfigurationError(
            f"handler {name!r} is a generator function, so calling it runs none of its code; expected a function "
            "without yield"
        )


def _called(function: Callable[..., Any]) -> tuple[Any, Any]:
    while isinstance(function, partial):
        function = function.func
    return function, getattr(function, "__call__", None)  # noqa: B004


def stored(error: BaseException, kind: type[BaseException], name: str) -> Any:
    """Return an attribute of an exception as Python keeps it: the user's class may have a property of that name.

    Args:
        error: of the kind.
        kind: Python's own class that has the attribute.
        name: of the attribute.
    """
    return kind.__dict__[name].__get__(error)


def require_one_parameter(name: str, function: Callable[..., Any]) -> None:
    """Refuse a function that can't be called with the record alone.

    Args:
        name: how the settings name it.
        function: the user's function or bound method.

    Raises:
        ConfigurationError: it takes another number of arguments; fix the handler.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions written in C have no signature
        return
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    takes_one = any(p.kind in _POSITIONAL or p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(required) > 1 or not takes_one or any(p.kind is p.KEYWORD_ONLY for p in required):
        seen = ", ".join(p.name for p in required) or "none"
        raise ConfigurationError(
            f"handler {name!r} takes {len(required)} parameter{'' if len(required) == 1 else 's'} ({seen}); "
            "expected one, the record: def handle(record)"
        )


def place_of(error: BaseException) -> str:
    """Return the innermost place outside of this project and of Python's importing, as `` (shop/orders.py:3: line)``.

    Args:
        error: as it was caught.

    Returns:
        An empty string where there is no such place: the module itself was not found, say.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({_shown(error.filename)}:{error.lineno}: {(error.text or '').strip()})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    if not frames:
        return ""
    last = frames[-1]
    return f" ({_shown(last.filename)}:{last.lineno}: {last.line})"


def _is_users(filename: str) -> bool:
    path = Path(filename)
    # Libraries of theirs count as well, but the line that says most is the last of their own.
    is_python = filename.startswith("<") or path.parent.name == "importlib"
    return not is_python and "site-packages" not in path.parts and OURS not in path.parents


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if Path.cwd() in path.parents else filename
