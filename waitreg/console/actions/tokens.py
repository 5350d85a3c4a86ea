"""Signed proofs that a person brings back: of the dry run that they saw, and of the reason that they gave.

Nothing is kept here. A token is for one person, and for one job or dead letter.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from pydantic import ValidationError

from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Place, Replacement, Requested
from waitreg.console.access.grants import Person
from waitreg.console.access.permission import Reveal
from waitreg.console.signing import Signer
from waitreg.redrive.edit import replacement_digest

DRY_RUN_S: Final = 900.0
REVEAL_S: Final = 600.0
# With the other fields and the encoding of a form, less than the 64 KiB of a request.
MOST_BYTES: Final = 48 * 1024
_AGAIN: Final = "make the dry run again"


class JobTokens:
    """Signs the jobs that dry runs showed, and reads them again. A start accepts nothing else.

    Args:
        key: the secret, at least 32 bytes; consoles with the same one read each other's forms.
        clock: returns the time, in s since the epoch.
    """

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._signer = Signer(key, "job", clock)

    def sign(self, person: str, job: Requested) -> str:
        """Return the token of a job that was shown to a person; of an edited record, it has the digest alone.

        Raises:
            ConfigurationError: the job has too many conditions for a form.
        """
        plain = job.model_copy(update={"replacement": None})
        token = self._signer.sign([person, plain.model_dump(mode="json"), _digest(job.replacement)])
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
            ConfigurationError: no console with this key signed it, or it was signed for another person or record.
        """
        value = self._signer.read(token, math.inf)
        if value is None:
            raise ConfigurationError(f"this console didn't make this form, perhaps it was restarted: {_AGAIN}")
        signed_for, content, edit = value
        if signed_for != person:
            raise ConfigurationError(f"this form was made for another person: {_AGAIN}")
        try:
            job = Requested.model_validate(content)
        except ValidationError as error:
            raise ConfigurationError(f"this form can't be read: {_AGAIN}") from error
        if edit != _digest(replacement):
            raise ConfigurationError("this isn't the edit that was reviewed: review it again")
        job = job.model_copy(update={"replacement": replacement})
        return job, self._signer.read(token, DRY_RUN_S) is not None


class RevealTokens:
    """Signs and reads the proofs that a person has given the reason for which they are shown what is hidden.

    A page of the dead letter shows it with this proof in its address: to this person, for ten minutes, and of this dead
    letter alone.

    Args:
        key: the secret, at least 32 bytes.
        clock: returns the time, in s since the epoch.
    """

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._signer = Signer(key, "reveal", clock)

    def sign(self, reveal: Reveal) -> str:
        """Return the proof; call this when the reason is recorded."""
        return self._signer.sign([reveal.person.name, str(reveal.place)])

    def proves(self, token: str, person: Person, place: Place) -> bool:
        """Return whether a text is the proof of this person for this dead letter, and is new enough."""
        found: object = self._signer.read(token, REVEAL_S)
        return found == [person.name, str(place)]


def _digest(replacement: Replacement | None) -> str:
    return "" if replacement is None else replacement_digest(replacement)
