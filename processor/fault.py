"""The first error that a callback met and can't raise itself: the loop raises it in its next turn (P8)."""

from __future__ import annotations


class Fault:
    """Holds the error that ends the process; written from callbacks in any thread, raised by the loop."""

    def __init__(self) -> None:
        self._error: BaseException | None = None

    @property
    def error(self) -> BaseException | None:
        """The error, if there is one."""
        return self._error

    def report(self, error: BaseException) -> None:
        """Take note of an error after which the process can't go on; the first one counts."""
        if self._error is None:
            self._error = error

    def raise_if_any(self) -> None:
        """Raise the error, if there is one."""
        if self._error is not None:
            raise self._error
