"""The answer of a health check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """``ok``, or the reasons why not, for people."""

    ok: bool
    reasons: tuple[str, ...] = ()

    @staticmethod
    def of(reasons: tuple[str, ...] | list[str]) -> Health:
        """Return a healthy answer if there is no reason against it."""
        return Health(not reasons, tuple(reasons))
