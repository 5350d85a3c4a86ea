"""When a record is registered: ``processor.registration``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from processor.protocol.events import Assigned
from processor.protocol.partition import Recorded
from wait_registry.settings.processor import RegistrationMode


@dataclass(frozen=True, slots=True)
class RegistrationPolicy:
    """A mode as the engine needs it.

    Args:
        mode: its name in settings and commit metadata.
        before_call: whether a call waits for its registration.
        after_s: a record that isn't settled so long after it was polled is registered, s.
    """

    mode: RegistrationMode
    before_call: bool
    after_s: float

    @property
    def passes_registered(self) -> bool:
        """Whether a commit may pass a record that is registered and not settled; `off` waits for every call."""
        return self.mode is not RegistrationMode.OFF

    @classmethod
    def of(cls, mode: RegistrationMode, register_after_s: float) -> RegistrationPolicy:
        """Return the policy of a mode; ``register_after_s`` counts in `deferred` only."""
        if mode is RegistrationMode.DEFERRED:
            return cls(mode, before_call=False, after_s=register_after_s)
        return cls(mode, before_call=mode is RegistrationMode.EAGER, after_s=math.inf)

    def recorded(self, assigned: Assigned, uncommitted_max: int) -> Recorded:
        """Return what commits record until one covers the whole warm-up: what an earlier owner may have registered too.

        Args:
            assigned: the assignment.
            uncommitted_max: this process's own bound.
        """
        bound = None if assigned.recorded_bound is None else max(uncommitted_max, assigned.recorded_bound)
        keeps_mode = self.mode is RegistrationMode.OFF and assigned.recorded_mode is not None
        return Recorded(bound, assigned.recorded_mode if keeps_mode else self.mode.value)

    def is_announced(self, assigned: Assigned, uncommitted_max: int) -> bool:
        """Return whether the last commit says what this process may do beyond its offset, so that the next owner knows.

        Args:
            assigned: the assignment.
            uncommitted_max: this process's own bound.
        """
        if assigned.recorded_mode in (None, RegistrationMode.OFF):
            return self.mode is RegistrationMode.OFF
        return assigned.recorded_bound is None or assigned.recorded_bound >= uncommitted_max

    def warm_up(self, assigned: Assigned, uncommitted_max: int) -> tuple[float, float]:
        """Return how long the warm-up of an assignment is: records, and the offset at which it ends.

        A previous owner may have registered as many records as it could have uncommitted, without committing them. What
        the log didn't have at the assignment, no previous owner can have polled.

        Args:
            assigned: the assignment.
            uncommitted_max: this process's own bound.
        """
        other_mode = assigned.recorded_mode is not None and assigned.recorded_mode != RegistrationMode.OFF
        if self.mode is RegistrationMode.OFF and not other_mode:
            return 0, 0
        bound = math.inf if assigned.recorded_bound is None else max(uncommitted_max, assigned.recorded_bound)
        return bound, math.inf if assigned.end is None else assigned.end
