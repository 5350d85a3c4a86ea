"""What the handler contract says about a failure: whether it is retried, and after which pause."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from processor.handlers.user_code import stored
from wait_registry.errors import PermanentError, TransientError

log = logging.getLogger(__name__)


def is_retriable(error: BaseException) -> bool:
    """Return whether the handler contract retries such a failure in process; of a group, each one of its members."""
    return all(
        isinstance(one, (TransientError, TimeoutError, OSError)) and not isinstance(one, PermanentError)
        for one in _members(error)
    )


def asked_pause_s(error: BaseException) -> float:
    """Return the pause that a failure asks for before the next attempt, s; 0 if it asks for none that is a number."""
    return max(map(_asked_pause_s, _members(error)))


def _members(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of a group at all of its levels, which may be thousands; of any other error, itself."""
    pending, seen = [error], {id(error)}
    while pending:
        one = pending.pop()
        if not isinstance(one, BaseExceptionGroup):
            yield one
            continue
        new = [each for each in stored(one, BaseExceptionGroup, "exceptions") if id(each) not in seen]
        seen.update(map(id, new))
        pending += new


def _asked_pause_s(error: BaseException) -> float:
    if not isinstance(error, TransientError):
        return 0
    try:
        return float(error.retry_after_s or 0)
    except Exception as unusable:  # noqa: BLE001 - the handler's own class may raise anything
        name = type(error).__name__
        log.warning("retry_after_s of a %s is no number of seconds, and counts as None: %s", name, unusable)
        return 0
