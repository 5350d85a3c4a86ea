"""Something that goes on beside a run, again and again, in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self


class Companion:
    """Does something at intervals until it is ended; a context manager.

    What breaks it off is raised where it ends, unless something else is being raised there: whoever believed that it
    went on concludes nothing.

    Args:
        name: of the thread.
        interval_s: from the end of one time to the beginning of the next one, s.
        do_once: what it does.
    """

    def __init__(self, name: str, interval_s: float, do_once: Callable[[], object]) -> None:
        self.ended = threading.Event()
        """Set once it is to end: what takes long in ``do_once`` heeds it."""
        self._interval_s = interval_s
        self._do_once = do_once
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *of_no_interest: object) -> None:
        self._join()
        if kind is None:
            self._require_unbroken()

    def end(self) -> None:
        """Do it no more; raises what broke it off. May be called again."""
        self._join()
        self._require_unbroken()

    def _join(self) -> None:
        self.ended.set()
        self._thread.join()

    def _require_unbroken(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self.ended.wait(self._interval_s):
                self._do_once()
        except BaseException as error:  # noqa: BLE001 - raised where it ends
            self._failure = error
