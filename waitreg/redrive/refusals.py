"""What the broker has refused of a job, and how many dead letters are tried together after that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wait_registry.records.operation import Place
from waitreg.redrive.classifier import CHUNK


@dataclass(frozen=True, slots=True)
class Refusals:
    """What the broker has refused.

    A refusal is of a whole transaction, so the record that it means is found by halving what is tried together. A job
    of CHUNK dead letters with one such record needs about forty transactions, not one per dead letter.

    Attributes:
        places: of dead letters whose records it refused when they were tried alone.
        most: how many dead letters are tried together at most.
    """

    places: frozenset[Place] = frozenset()
    most: int = CHUNK

    def after_refusal(self, tried: Sequence[Place]) -> Refusals:
        """Return what follows from the refusal of these dead letters together: half of them are tried next."""
        alone = tried if len(tried) == 1 else ()
        return Refusals(self.places.union(alone), max(1, len(tried) // 2))

    def after_success(self) -> Refusals:
        """Return what follows from a transaction that was written: twice as many are tried next."""
        return replace(self, most=min(CHUNK, 2 * self.most))
