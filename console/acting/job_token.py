"""The signed form of a dry run: the job that it showed, for whom, and when. A start accepts nothing else."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

from pydantic import BaseModel, ValidationError

from redrive.edit import replacement_digest
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Replacement, Requested

LIFETIME_S: Final = 900.0
# With the other fields and the encoding of a form, less than the 64 KiB of a request.
MOST_BYTES: Final = 48 * 1024
_AGAIN: Final = "make the dry run again"


class _Signed(BaseModel):
    person: str
    at_s: float
    job: Requested
    edit: str


class JobTokens:
    """Signs jobs with a key of this process and reads them again.

    Args:
        now_s: the time, seconds since any moment.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._key = secrets.token_bytes(32)
        self._now_s = now_s

    def sign(self, person: str, job: Requested) -> str:
        """Return the token of a job that was shown to a person; of an edited record, it has the digest alone.

        Raises:
            ConfigurationError: the job has too many conditions for a form.
        """
        plain, edit = job.model_copy(update={"replacement": None}), _digest(job.replacement)
        content = _Signed(person=person, at_s=self._now_s(), job=plain, edit=edit).model_dump_json().encode()
        token = f"{_text(content)}.{_text(self._signature(content))}"
        if len(token) > MOST_BYTES:
            raise ConfigurationError("too many dead letters are named one by one: use conditions, or take fewer")
        return token

    def read(self, person: str, token: str, replacement: Replacement | None = None) -> tuple[Requested, bool]:
        """Return the job of a token, and whether the token is still new enough to start it.

        Args:
            person: who sends it.
            token: of a dry run.
            replacement: the edited record that is sent with it; it must be the one that was shown.

        Raises:
            ConfigurationError: this console didn't sign it, or signed it for another person or another record.
        """
        content, signature = map(_bytes, token.partition(".")[::2])
        if not hmac.compare_digest(signature, self._signature(content)):
            raise ConfigurationError(f"this console didn't make this form, perhaps it was restarted: {_AGAIN}")
        try:
            signed = _Signed.model_validate_json(content)
        except ValidationError as error:
            raise ConfigurationError(f"this form can't be read: {_AGAIN}") from error
        if signed.person != person:
            raise ConfigurationError(f"this form was made for another person: {_AGAIN}")
        if signed.edit != _digest(replacement):
            raise ConfigurationError("this isn't the edit that was reviewed: review it again")
        return signed.job.model_copy(update={"replacement": replacement}), self._now_s() - signed.at_s <= LIFETIME_S

    def _signature(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, hashlib.sha256)


def _digest(replacement: Replacement | None) -> str:
    return "" if replacement is None else replacement_digest(replacement)


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode()


def _bytes(text: str) -> bytes:
    try:
        content = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
    except ValueError:
        return b""
    # Each content has one text only.
    return content if _text(content) == text else b""
