"""The errors of the wait registry, a tree ordered by the response."""

from __future__ import annotations

from typing import ClassVar


class WaitRegistryError(Exception):
    """Root of the tree; a service that can't continue because of one ends with ``exit_code``."""

    exit_code: ClassVar[int] = 1


class ConfigurationError(WaitRegistryError):
    """A setting, topic, schema or handler is wrong: fix it as the message says, then restart."""

    exit_code: ClassVar[int] = 2


class TransientError(WaitRegistryError):
    """The operation may succeed later: retry it with backoff. Handlers raise it to have a record retried.

    Args:
        args: what happened, in words.
        retry_after_s: the least pause before the next attempt, s; None leaves it to the settings.
    """

    retry_after_s: float | None = None

    def __init__(self, *args: object, retry_after_s: float | None = None) -> None:
        super().__init__(*args)
        self.retry_after_s = retry_after_s


class PermanentError(WaitRegistryError):
    """The operation will fail again: dead-letter the record. Handlers raise it to skip the remaining attempts."""


class MalformedError(PermanentError):
    """The value of a record can't be decoded: dead-letter the record as ``malformed``."""


class FencedError(WaitRegistryError):
    """Another owner is alive: stop at once and change nothing."""

    exit_code: ClassVar[int] = 3


class DataError(WaitRegistryError):
    """A record can't be decoded: quarantine it and continue."""


class ReconciliationError(WaitRegistryError):
    """Independent counts contradict a guarantee: look at the records that the message names."""

    exit_code: ClassVar[int] = 4
