"""How the downstream behaves: shares of latencies and of failures, each taken in a fixed turn.

A share of 10 % is every tenth call, not merely a likely one, so that two runs are comparable.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Final, Generic, TypeVar

from wait_registry.errors import ConfigurationError

T = TypeVar("T")

MAX_PERIOD: Final = 100_000
DROPPED: Final = 0  # the connection is closed without an answer


class Rotation(Generic[T]):
    """A repeating turn of choices in which each comes exactly as often as its share says, evenly spread."""

    def __init__(self, shares: Sequence[tuple[Fraction, T]]) -> None:
        """Take ``shares`` (fractions that add up to 1, with what each chooses); raise ConfigurationError otherwise."""
        total = sum((share for share, _ in shares), Fraction(0))
        if not shares or total != 1 or any(share < 0 for share, _ in shares):
            raise ConfigurationError(f"shares add up to {float(total * 100):g} %; they must add up to 100 %")
        period = math.lcm(*(share.denominator for share, _ in shares))
        if period > MAX_PERIOD:
            raise ConfigurationError(f"shares this fine repeat only after {period} calls; use at most three decimals")
        choices = _spread([int(share * period) for share, _ in shares], period)
        self.turn = tuple(shares[index][1] for index in choices)

    def at(self, turn: int) -> T:
        """Return the choice of a turn, counted from 1."""
        return self.turn[(turn - 1) % len(self.turn)]


def _spread(weights: Sequence[int], period: int) -> list[int]:
    # Smooth weighted round robin (nginx): no choice comes in a clump.
    credit = [0] * len(weights)
    turn = []
    for _ in range(period):
        credit = [have + weight for have, weight in zip(credit, weights, strict=True)]
        chosen = max(range(len(weights)), key=credit.__getitem__)
        credit[chosen] -= period
        turn.append(chosen)
    return turn


def parse_rotation(text: str, parse_choice: Callable[[str], T], *, rest: T | None = None) -> Rotation[T]:
    """Read ``"10%:1s,90%:200ms"``: shares with what each chooses; a single choice without a share is all of it.

    ``rest`` is chosen by what the shares leave over. Raises ConfigurationError that quotes the part it can't read.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) == 1 and "%" not in parts[0]:
        parts[0] = f"100%:{parts[0]}"
    shares = [_share(part, parse_choice) for part in parts]
    left = 1 - sum((share for share, _ in shares), Fraction(0))
    if rest is not None and left > 0:
        shares.append((left, rest))
    return Rotation(shares)


def _share(part: str, parse_choice: Callable[[str], T]) -> tuple[Fraction, T]:
    share, colon, choice = part.partition(":")
    try:
        if not colon or not share.strip().endswith("%"):
            raise ValueError(part)
        return Fraction(share.strip().removesuffix("%")) / 100, parse_choice(choice.strip())
    except (ValueError, ZeroDivisionError):
        raise ConfigurationError(f"can't read {part!r}; expected SHARE%:CHOICE, for example 10%:1s") from None


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from ``least_s`` to ``most_s``, evenly; infinite ones hang until the caller gives up."""

    least_s: float
    most_s: float

    def of_call(self, number: int) -> float:
        """Return the seconds of a call: the same for the same number, so that runs are comparable."""
        if self.least_s == self.most_s:
            return self.least_s
        return Random(number).uniform(self.least_s, self.most_s)


def parse_latency(text: str) -> Latency:
    """Read ``200ms``, ``1s-5s`` or ``hang``; raise ValueError otherwise."""
    if text == "hang":
        return Latency(math.inf, math.inf)
    least, dash, most = text.partition("-")
    least_s = parse_duration_s(least.strip())
    most_s = parse_duration_s(most.strip()) if dash else least_s
    if most_s < least_s:
        raise ValueError(text)
    return Latency(least_s, most_s)


def parse_status(text: str) -> int:
    """Read an HTTP status, or ``drop``; raise ValueError otherwise."""
    if text == "drop":
        return DROPPED
    status = int(text)
    if not 200 <= status <= 599:
        raise ValueError(text)
    return status


def parse_duration_s(text: str) -> float:
    """Return the seconds of ``200ms``, ``1s`` or ``1.5s``; raise ValueError otherwise."""
    for suffix, factor in (("ms", 0.001), ("s", 1.0)):
        if text.endswith(suffix):
            seconds = float(text.removesuffix(suffix)) * factor
            if not 0 <= seconds <= 86_400:
                raise ValueError(text)
            return seconds
    raise ValueError(text)
