"""The first error that ends the process."""

from __future__ import annotations


class Fault:
    """Holds the error that ends the process; written from callbacks in any thread, raised by the loop.

    Attributes:
        error: the error, None if there is none.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def report(self, error: BaseException) -> None:
        """Note an error after which the process can't continue; the first one counts."""
        if self.error is None:
            self.error = error

    def raise_if_any(self) -> None:
        """Raise the error, if there is one."""
        if self.error is not None:
            raise self.error
