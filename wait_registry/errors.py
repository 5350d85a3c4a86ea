"""The errors of the wait registry, as a tree ordered by what the one who catches them should do."""

from __future__ import annotations

from typing import ClassVar


class WaitRegistryError(Exception):
    """Root of the tree: a service that meets one it can't answer ends with ``exit_code``."""

    exit_code: ClassVar[int] = 1


class ConfigurationError(WaitRegistryError):
    """A setting, topic, schema or handler is not as it must be: mend it as the message says, then start again."""

    exit_code: ClassVar[int] = 2


class TransientError(WaitRegistryError):
    """What failed may succeed later: retry it with backoff. Handlers raise it to have a record tried again."""


class PermanentError(WaitRegistryError):
    """What failed will fail again: dead-letter the record. Handlers raise it to skip the remaining attempts."""


class FencedError(WaitRegistryError):
    """Another owner is alive: stop at once and change nothing more."""

    exit_code: ClassVar[int] = 3


class DataError(WaitRegistryError):
    """Bytes that can't be read as what they should be: quarantine them, go on with the rest."""


class ReconciliationError(WaitRegistryError):
    """Counts taken from outside disagree with what was promised: look at the records that the message names."""

    exit_code: ClassVar[int] = 4
