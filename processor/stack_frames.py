"""The stack frames that an exception holds, and with them the record that its handler worked on."""

from __future__ import annotations


def release_frames(error: BaseException) -> None:
    """Take the tracebacks off an exception and off all that stand behind it, when nobody will show them any more.

    An exception that a frame of its own traceback holds is a cycle: where it was caught and handed on, and in every
    future that raised it to who awaited it. Only the garbage collector finds those, thousands of failed records later.

    Args:
        error: it, its causes and contexts, and the members of groups among them keep what they say.
    """
    pending, seen = [error], {id(error)}
    while pending:
        one = pending.pop()
        # Not an assignment: an exception of a user's class may refuse those.
        BaseException.with_traceback(one, None)
        members = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        for behind in (one.__cause__, one.__context__, *members):
            if behind is not None and id(behind) not in seen:
                seen.add(id(behind))
                pending.append(behind)
