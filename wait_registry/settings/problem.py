"""What is wrong with a combination of settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """Settings that contradict each other; ``fatal`` ones keep a service from starting, the others are logged."""

    message: str
    fatal: bool = True
