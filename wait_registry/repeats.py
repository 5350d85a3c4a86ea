"""Which messages that repeat are logged: one of each kind in an interval, and the end of failures in a row."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

REPEAT_INTERVAL_S = 30.0
# While work fails, each kind of failure is logged this often, s.
REMINDER_S = 300.0
MAX_REMEMBERED = 1_000
# The status of an HTTP answer is no such number: another one is another reason.
_NUMBERS = re.compile(r"(?<!status )(?<!\d)\d+")


def kind_of(text: str) -> str:
    """Return what messages have in common that differ in numbers only (durations, ports, offsets)."""
    return _NUMBERS.sub("#", text)


@dataclass(slots=True)
class _Seen:
    last_s: float
    suppressed: int = 0


class RepeatFilter(logging.Filter):
    """Lets a message pass at most once in an interval, then with the number of its repetitions.

    Messages of one kind (`kind_of`) count as the same. Other kinds of errors pass.
    """

    def __init__(self, interval_s: float = REPEAT_INTERVAL_S, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._interval_s = interval_s
        self._monotonic = monotonic
        self.seen: dict[str, _Seen] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        suppressed = self.suppressed(text)
        if suppressed:
            record.msg, record.args = "%s (and %d times more since)", (text, suppressed)
        return suppressed is not None

    def suppressed(self, text: str) -> int | None:
        """Note a message; return how often its kind was suppressed since it last passed, None if it doesn't pass."""
        now_s, kind = self._monotonic(), kind_of(text)
        seen = self.seen.get(kind)
        if seen is not None and now_s - seen.last_s < self._interval_s:
            seen.suppressed += 1
            return None
        if len(self.seen) >= MAX_REMEMBERED:
            self.forget()
        self.seen[kind] = _Seen(now_s)
        return 0 if seen is None else seen.suppressed

    def forget(self) -> None:
        """Let the next message of any kind pass."""
        self.seen.clear()


class Failures:
    """Failures in a row of work that is tried again and again.

    Args:
        log: gets the line that they are over.
        over: text of that line, for example ``"sweeps work again"``.
        monotonic: returns seconds of a clock that never steps.
    """

    def __init__(self, log: logging.Logger, over: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._over = over
        self._repeats = RepeatFilter(REMINDER_S, monotonic)
        self._count = 0

    def is_news(self, reason: str) -> bool:
        """Note a failure; return whether to log it: the first of its kind, and later a reminder."""
        self._count += 1
        return self._repeats.suppressed(reason) is not None

    def end(self) -> None:
        """Note a success; log it if work had failed before."""
        if self._count:
            self._log.info("%s (failures: %d)", self._over, self._count)
        self._count = 0
        self._repeats.forget()
