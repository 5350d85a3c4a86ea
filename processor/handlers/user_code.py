"""Where in the user's own code an exception arose, for a message of one line."""

from __future__ import annotations

import traceback
from pathlib import Path

OURS = Path(__file__).parents[1]


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
