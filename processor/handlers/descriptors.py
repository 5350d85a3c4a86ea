"""File descriptors: a connection takes one, and a process that has none left can't try any record."""

from __future__ import annotations

import contextlib
import errno
import os
import resource

from processor.handlers.user_code import stored
from wait_registry.errors import ConfigurationError, TransientError

# For the Kafka clients (a few a broker), telemetry's connections, and what the interpreter has open.
RESERVE = 128
# What Linux grants at most by default (fs.nr_open), and macOS without being asked.
_LIMITS_ASKED_FOR = (1_048_576, 10_240)
_CAUSES_LOOKED_AT = 10


class ShortageError(TransientError):
    """The host gives this process too little: end it without an outcome for the record, which stays in the registry."""


class NoDescriptorError(ShortageError):
    """A handler has failed because this process, or its host, has no file descriptor left."""


class NoThreadError(ShortageError):
    """The process can't start one more thread: the call hasn't begun."""


def raise_descriptor_limit() -> None:
    """Raise this process's soft limit to its hard one, as far as the host lets us; it is never lowered.

    The usual soft limit, 1024, is there for programs that call select(2), which none of our parts does.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for asked in _LIMITS_ASKED_FOR:
        wanted = asked if hard == resource.RLIM_INFINITY else min(asked, hard)
        if soft == resource.RLIM_INFINITY or wanted <= soft:
            return
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return


def require_descriptors(calls: int) -> None:
    """Refuse to make calls at once that the process can't have connections for.

    Args:
        calls: at once, at most; each takes a descriptor.

    Raises:
        ConfigurationError: the limit leaves too few; the message has the numbers and what to change.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < calls + RESERVE:
        raise ConfigurationError(
            f"this process may have {soft} files and connections open, and processor.max_in_flight = {calls} calls "
            f"with {RESERVE} for Kafka and the rest need {calls + RESERVE}. Allow it more (ulimit -Hn, LimitNOFILE= of "
            f"systemd, the container's nofile), or lower processor.max_in_flight to {max(1, soft - RESERVE)}"
        )


def no_descriptor(error: BaseException) -> NoDescriptorError | None:
    """Return what to end with if a failure, or what it was made of, is the lack of a descriptor; else None."""
    seen: BaseException | None = error
    for _ in range(_CAUSES_LOOKED_AT):
        if seen is None:
            return None
        number = stored(seen, OSError, "errno") if isinstance(seen, OSError) else None
        if number in (errno.EMFILE, errno.ENFILE):
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            return NoDescriptorError(
                f"the handler failed: {os.strerror(number)}; this process may have {soft}. The record has no "
                "outcome and stays in the registry. Check that the handler closes what it opens. Allow the process "
                "more (ulimit -Hn, LimitNOFILE= of systemd, the container's nofile; on the host fs.file-max), or lower "
                "processor.max_in_flight"
            )
        hidden = stored(seen, BaseException, "__suppress_context__")
        seen = stored(seen, BaseException, "__cause__") or (
            None if hidden else stored(seen, BaseException, "__context__")
        )
    return None
