"""Texts that a browser keeps and brings back: signed, so that a changed one is known, and limited in time."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import time
from collections.abc import Callable
from typing import Any, Final

from wait_registry.settings.console import ConsoleSettings

_MAC_BYTES: Final = 32


class Signer:
    """Signs values for one purpose with HMAC-SHA256; another purpose or key doesn't read them.

    Args:
        key: the secret, at least 32 bytes.
        purpose: what the values are for.
        clock: returns the time, in s since the epoch.
    """

    def __init__(self, key: bytes, purpose: str, clock: Callable[[], float] = time.time) -> None:
        self._key = hmac.digest(key, purpose.encode(), "sha256")
        self._clock = clock

    def sign(self, value: Any) -> str:
        """Return a JSON value as a text for a cookie or a form, with the time."""
        data = json.dumps([self._clock(), value], separators=(",", ":")).encode()
        return url_text(self.mac(data) + data)

    def read(self, text: str, longest_s: float) -> Any:
        """Return what was signed at most ``longest_s`` ago; None for any other text."""
        try:
            data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        except ValueError:
            return None
        # Each content has one text only.
        if url_text(data) != text:
            return None
        mac, data = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self.mac(data)):
            return None
        signed_s, value = json.loads(data)
        return value if self._clock() - signed_s < longest_s else None

    def mac(self, data: bytes) -> bytes:
        """Return 32 bytes that follow from these, and that only those who have the key can know."""
        return hmac.digest(self._key, data, "sha256")


def signing_key(settings: ConsoleSettings) -> bytes:
    """Return the secret of the setting; without one, a random secret of this call, which no other console knows."""
    given = settings.signing_key
    return secrets.token_bytes(32) if given is None else given.get_secret_value().encode()


def url_text(data: bytes) -> str:
    """Return bytes as characters that addresses and cookies take as they are (base64url without padding)."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
