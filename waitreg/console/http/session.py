"""Sessions: who has logged in, in a signed cookie of theirs, for 8 hours, or one hour without a page."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from waitreg.console.signing import Signer

LONGEST_S: Final = 8 * 3600.0
IDLE_S: Final = 3600.0
# A cookie is renewed when it is older, so that not every answer has one.
_RENEWED_S: Final = 60.0


class Session(NamedTuple):
    """A person who has logged in at ``begun_s`` (s since the epoch), with the groups that any grant names."""

    id: str
    begun_s: float
    name: str
    groups: tuple[str, ...]


class Sessions:
    """Begins, finds and ends sessions. None is kept here: a cookie has all of it.

    Args:
        key: signs the cookies; consoles with the same key know each other's sessions.
        clock: returns the time, in s since the epoch.
    """

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._signer = Signer(key, "session", clock)
        self._clock = clock
        self._ended: dict[str, float] = {}

    def begin(self, name: str, groups: Iterable[str]) -> Session:
        """Return a new session, with nothing of an earlier one."""
        return Session(secrets.token_urlsafe(16), self._clock(), name, tuple(groups))

    def cookie(self, session: Session) -> str:
        """Return the text of the cookie, from which the idle time counts."""
        return self._signer.sign(session)

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None if it has ended, or no session of this key ever had that cookie."""
        value = self._signer.read(cookie, IDLE_S)
        if value is None:
            return None
        identifier, begun_s, name, groups = value
        session = Session(identifier, begun_s, name, tuple(groups))
        return None if self._is_over(session) else session

    def renewed(self, cookie: str, session: Session) -> str | None:
        """Return a younger cookie for a session; None if the one that it has is young enough."""
        return self.cookie(session) if self._signer.read(cookie, _RENEWED_S) is None else None

    def end(self, session: Session) -> None:
        """End a session: copies of its cookie are worth nothing from now on, as long as this process runs."""
        now_s = self._clock()
        self._ended = {name: begun_s for name, begun_s in self._ended.items() if now_s - begun_s < LONGEST_S}
        self._ended[session.id] = session.begun_s

    def _is_over(self, session: Session) -> bool:
        return session.id in self._ended or self._clock() - session.begun_s >= LONGEST_S
