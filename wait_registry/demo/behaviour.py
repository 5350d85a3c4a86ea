"""How the downstream behaves: after how long it answers, whether at all, and with which status."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import Final

from wait_registry.demo.rotation import Rotation, parse_duration_s, parse_rotation

OK: Final = 200
DROPPED: Final = 0  # the connection is closed without an answer


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


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A mixture of latencies and one of statuses, each with the text that it was read from."""

    mixture: str
    failures: str
    latencies: Rotation[Latency]
    statuses: Rotation[int]

    @classmethod
    def read(cls, mixture: str, failures: str) -> Behaviour:
        """Read both mixtures.

        Args:
            mixture: shares of latencies: ``10%:1s-5s,1%:hang,89%:200ms``, or one latency.
            failures: shares of calls that fail after their latency: ``1%:503,0.5%:drop``; the others answer 200.

        Raises:
            ConfigurationError: quotes what can't be read.
        """
        statuses = parse_rotation(failures or str(OK), parse_status, rest=OK)
        return cls(mixture, failures, parse_rotation(mixture, parse_latency), statuses)


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
