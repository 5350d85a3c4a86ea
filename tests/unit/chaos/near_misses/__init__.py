"""All near misses: importing a file adds its own to the list."""

from tests.unit.chaos.near_misses import answers, bounds, decisions, evidence, repetitions
from tests.unit.chaos.near_misses.allowing import NEAR_MISSES

__all__ = ["NEAR_MISSES", "answers", "bounds", "decisions", "evidence", "repetitions"]
