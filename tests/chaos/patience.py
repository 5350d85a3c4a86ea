"""How long to wait for what others work off: as long as it changes, and not for ever."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Patience:
    """Ends when nothing has changed for ``still_s``, or after ``most_s`` in all, whatever changes; s, of one clock.

    A busy machine makes everything slow, and that breaks no promise. What hangs, or goes round for ever, does.
    """

    still_s: float
    most_s: float
    _began_s: float | None = field(default=None, init=False)
    _changed_s: float = field(default=0.0, init=False)
    _seen: str = field(default="", init=False)

    def over(self, now_s: float, seen: str) -> bool:
        """Return whether to wait no longer, now that this is what is left to do."""
        if self._began_s is None:
            self._began_s = self._changed_s = now_s
        if seen != self._seen:
            self._seen, self._changed_s = seen, now_s
        return now_s - self._changed_s >= self.still_s or now_s - self._began_s >= self.most_s
