"""The proof that a person has given the reason for which they are shown what is hidden of one dead letter.

A page of the dead letter shows it with this proof in its address: to this person, for ten minutes, and of this dead
letter alone. Nothing is kept here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from wait_registry.records.operation import Place
from waitreg.console.access.grants import Person
from waitreg.console.access.permission import Reveal
from waitreg.console.http.seal import Seal

LIFETIME_S: Final = 600.0


class Reveals:
    """Signs and reads proofs.

    Args:
        key: the secret, at least 32 bytes.
        clock: returns the time, in s since the epoch.
    """

    def __init__(self, key: bytes, clock: Callable[[], float] = time.time) -> None:
        self._seal = Seal(key, "reveal", clock)

    def proof(self, reveal: Reveal) -> str:
        """Return the proof; call this when the reason is recorded."""
        return self._seal.close([reveal.person.name, str(reveal.place)])

    def holds(self, person: Person, place: Place, proof: str) -> bool:
        """Return whether a text is the proof of this person for this dead letter, and is new enough."""
        found: object = self._seal.open(proof, LIFETIME_S)
        return found == [person.name, str(place)]
