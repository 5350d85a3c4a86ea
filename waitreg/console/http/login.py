"""A login that has begun: what the answer of the issuer must fit, and where the person wanted to go."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from waitreg.console.page import local_path
from waitreg.console.signing import Signer, url_text

LONGEST_S: Final = 600.0


class Login(NamedTuple):
    """A login under way.

    ``state`` is in its browser's cookie and in the address of the answer, ``nonce`` in the ID token. ``verifier`` is
    known here alone until the code is exchanged (PKCE, RFC 7636).
    """

    state: str
    target: str
    nonce: str
    verifier: str

    @property
    def challenge(self) -> str:
        """The verifier as the issuer may see it before, by the method S256."""
        return url_text(hashlib.sha256(self.verifier.encode()).digest())


class Logins:
    """Begins logins and finds them again by the cookie of the browser that they began in.

    Args:
        key: signs the cookies.
        clock: returns the time, in s since the epoch.
    """

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._signer = Signer(key, "login", clock)

    def begin(self, target: str) -> Login:
        """Return a new login; it leads to the start page if the target isn't a path of this console."""
        return self._login(secrets.token_urlsafe(32), local_path(target))

    def cookie(self, login: Login) -> str:
        """Return the text of the cookie."""
        return self._signer.sign([login.state, login.target])

    def find(self, cookie: str, state: str) -> Login | None:
        """Return the login of a cookie; None if another login, or none of the last ten minutes, has this state."""
        value = self._signer.read(cookie, LONGEST_S)
        if value is None or not hmac.compare_digest(value[0].encode(), state.encode(errors="surrogateescape")):
            return None
        return self._login(*value)

    def _login(self, state: str, target: str) -> Login:
        nonce, verifier = (url_text(self._signer.mac(f"{what} {state}".encode())) for what in ("nonce", "verifier"))
        return Login(state, target, nonce, verifier)
