"""What a service answers when it is asked whether it is well."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """``ok``, or the reasons why not, as people read them."""

    ok: bool
    reasons: tuple[str, ...] = ()

    @staticmethod
    def of(reasons: tuple[str, ...] | list[str]) -> Health:
        """Be well exactly when there is no reason not to be."""
        return Health(not reasons, tuple(reasons))
