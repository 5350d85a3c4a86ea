"""What the user's own code is and raises: whether it can be a handler, and the parts of its exceptions."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from wait_registry.errors import ConfigurationError

OURS = Path(__file__).parents[1]


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


def release_frames(error: BaseException) -> None:
    """Remove the tracebacks of an exception and of its causes, contexts and group members.

    An exception that a frame of its own traceback holds is a reference cycle, and the frame holds the record. Only the
    garbage collector finds such cycles, thousands of failed records later.

    Args:
        error: keeps its message, as do its causes, contexts and group members.
    """
    pending, seen = [error], {id(error)}
    while pending:
        one = pending.pop()
        # Not an assignment: an exception of a user's class may refuse those.
        BaseException.with_traceback(one, None)
        members = stored(one, BaseExceptionGroup, "exceptions") if isinstance(one, BaseExceptionGroup) else ()
        links = (stored(one, BaseException, name) for name in ("__cause__", "__context__"))
        for behind in (*links, *members):
            if behind is not None and id(behind) not in seen:
                seen.add(id(behind))
                pending.append(behind)


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
