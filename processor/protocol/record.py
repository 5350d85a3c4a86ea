"""The life of a record between its poll and its outcome: a total table of states and steps.

Only `Entry` changes a record's state. `python -m tests.reference_pages` draws the steps from `TRANSITIONS`, which has
also those that are ignored, or leave the record to the next owner:

    POLLED --register--> REGISTERING --registered--> HELD --release--> READY_REGISTERED
    POLLED --release--> READY --register--> READY_REGISTERING --registered--> READY_REGISTERED
    POLLED --fail--> PUBLISHING --published--> SETTLED
    POLLED --refuse--> READY_UNREGISTRABLE --start--> RUNNING_UNREGISTRABLE --succeed--> SETTLED
    REGISTERING --refuse--> POLLED
    HELD --overdue--> RENEWING --registered--> HELD
    READY --start--> RUNNING --register--> RUNNING_REGISTERING --registered--> RUNNING_REGISTERED
    READY_REGISTERING --refuse--> READY_UNREGISTRABLE
    READY_REGISTERING --start--> RUNNING_REGISTERING --refuse--> RUNNING_UNREGISTRABLE
    READY_REGISTERED --overdue--> RENEWING
    READY_REGISTERED --start--> RUNNING_REGISTERED --succeed--> SETTLED
    RUNNING --succeed--> SETTLED
    RUNNING --fail--> PUBLISHING
    RUNNING_REGISTERING --succeed--> DONE_REGISTERING --registered--> SETTLED
    RUNNING_REGISTERING --fail--> PUBLISHING_REGISTERING --registered--> PUBLISHING_REGISTERED
    RUNNING_REGISTERED --fail--> PUBLISHING_REGISTERED --published--> SETTLED
    RUNNING_UNREGISTRABLE --fail--> PUBLISHING
    DONE_REGISTERING --refuse--> SETTLED
    PUBLISHING_REGISTERING --refuse--> PUBLISHING
    PUBLISHING_REGISTERING --published--> DONE_REGISTERING

A record that the next owner of its partition handles is DROPPED. Late reports and late ends are normal, and are rows of
the table. What can't happen is a fault of the program and ends the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from processor.protocol.partition import Partition
from processor.protocol.results import Lifetime, Outcome
from wait_registry.errors import PermanentError


class State(IntEnum):
    """How far a record has come. REGISTERED and REGISTERING say how far its wait record has come."""

    POLLED = 0
    REGISTERING = 1  # its call waits for the acknowledgment
    HELD = 2  # registered; its call waits for a commit that covers it
    READY = 3
    READY_REGISTERING = 4
    READY_REGISTERED = 5
    READY_UNREGISTRABLE = 6
    RENEWING = 7  # registered; its call waits for the acknowledgment of a second registration, which expires later
    RUNNING = 8
    RUNNING_REGISTERING = 9
    RUNNING_REGISTERED = 10
    RUNNING_UNREGISTRABLE = 11
    DONE_REGISTERING = 12  # has its outcome; its tombstone waits for the report of its wait record
    PUBLISHING = 13  # its dead letter or retry record isn't acknowledged
    PUBLISHING_REGISTERING = 14
    PUBLISHING_REGISTERED = 15
    SETTLED = 16
    DROPPED = 17  # the next owner handles it, or its registration expires


class Step(IntEnum):
    """What happens to a record."""

    REGISTER = 0  # its wait record is sent
    REGISTERED = 1  # its wait record is acknowledged
    REFUSE = 2  # its wait record is too large
    RELEASE = 3  # its call may start
    OVERDUE = 4  # too little of its time to live is left to start
    START = 5
    SUCCEED = 6  # done or discarded
    FAIL = 7  # goes to the dead letter topic or a retry topic
    PUBLISHED = 8
    DROP = 9  # its partition was given up below its offset
    ABANDON = 10  # its call was cancelled, or will never start, or its dead letter fits nowhere: it has no outcome


S = State
IGNORED: Final = None  # a late step that changes nothing
REGISTER, REGISTERED, REFUSE, RELEASE, OVERDUE, START, SUCCEED, FAIL, PUBLISHED, DROP, ABANDON = Step
_LATE: Final = (REGISTERED, REFUSE, SUCCEED, FAIL, PUBLISHED, DROP, ABANDON)

# Every pair of a state and a step that isn't listed is a fault.
TRANSITIONS: Final[dict[State, dict[Step, State | None]]] = {
    S.POLLED: {
        REGISTER: S.REGISTERING,
        RELEASE: S.READY,
        FAIL: S.PUBLISHING,  # malformed
        REFUSE: S.READY_UNREGISTRABLE,  # or it is called without a registration
        DROP: S.DROPPED,
    },
    # REFUSE: it is dead-lettered, or called without a registration.
    S.REGISTERING: {REGISTERED: S.HELD, REFUSE: S.POLLED, DROP: S.DROPPED},
    S.HELD: {RELEASE: S.READY_REGISTERED, OVERDUE: S.RENEWING, DROP: S.DROPPED, ABANDON: S.DROPPED},
    S.READY: {REGISTER: S.READY_REGISTERING, START: S.RUNNING, DROP: S.DROPPED},
    S.READY_REGISTERING: {
        REGISTERED: S.READY_REGISTERED,
        REFUSE: S.READY_UNREGISTRABLE,
        START: S.RUNNING_REGISTERING,
        DROP: S.DROPPED,
    },
    S.READY_REGISTERED: {OVERDUE: S.RENEWING, START: S.RUNNING_REGISTERED, DROP: S.DROPPED},
    S.READY_UNREGISTRABLE: {START: S.RUNNING_UNREGISTRABLE, DROP: S.DROPPED},
    # DROP: a second registration may come after the next owner's tombstone, and then only a tombstone of this process
    # ends it. In off, the record is abandoned all the same: no commit can have passed it, so the next owner calls it.
    S.RENEWING: {REGISTERED: S.HELD, DROP: IGNORED, ABANDON: S.DROPPED},
    S.RUNNING: {
        REGISTER: S.RUNNING_REGISTERING,
        SUCCEED: S.SETTLED,
        FAIL: S.PUBLISHING,
        DROP: S.DROPPED,
        ABANDON: S.DROPPED,
    },
    S.RUNNING_REGISTERING: {
        REGISTERED: S.RUNNING_REGISTERED,
        REFUSE: S.RUNNING_UNREGISTRABLE,
        SUCCEED: S.DONE_REGISTERING,
        FAIL: S.PUBLISHING_REGISTERING,
        DROP: S.DROPPED,
        ABANDON: S.DROPPED,
    },
    # DROP: the outcome of this call ends the registration; the next owner may call it, too.
    S.RUNNING_REGISTERED: {SUCCEED: S.SETTLED, FAIL: S.PUBLISHING_REGISTERED, DROP: IGNORED, ABANDON: S.DROPPED},
    S.RUNNING_UNREGISTRABLE: {SUCCEED: S.SETTLED, FAIL: S.PUBLISHING, DROP: S.DROPPED, ABANDON: S.DROPPED},
    S.DONE_REGISTERING: {REGISTERED: S.SETTLED, REFUSE: S.SETTLED, DROP: IGNORED},
    S.PUBLISHING: {PUBLISHED: S.SETTLED, DROP: IGNORED, ABANDON: S.DROPPED},
    S.PUBLISHING_REGISTERING: {
        REGISTERED: S.PUBLISHING_REGISTERED,
        REFUSE: S.PUBLISHING,
        PUBLISHED: S.DONE_REGISTERING,
        DROP: IGNORED,
        ABANDON: S.DROPPED,
    },
    S.PUBLISHING_REGISTERED: {PUBLISHED: S.SETTLED, DROP: IGNORED, ABANDON: S.DROPPED},
    S.SETTLED: {DROP: IGNORED},
    # The report of its wait record, and the end of its cancelled call, come after the partition has gone.
    S.DROPPED: dict.fromkeys(_LATE, IGNORED),
}


def _that_take(step: Step) -> frozenset[State]:
    return frozenset(state for state, row in TRANSITIONS.items() if row.get(step) is not IGNORED)


# Its call hasn't started, so the next owner can have it.
UNSTARTED: Final = frozenset({S.POLLED, S.REGISTERING, S.HELD}) | _that_take(START)
RUNNING: Final = _that_take(SUCCEED)
# It stays with this process when its partition is given up, but not in off.
KEPT: Final = frozenset({S.RENEWING, S.RUNNING_REGISTERED})
# It is registered, and its call hasn't started.
_MAY_RENEW: Final = _that_take(OVERDUE)
# Its wait record is on its way.
IN_FLIGHT: Final = _that_take(REGISTERED)
# It is worked on, and the next owner of its partition would handle it again.
UNREGISTERED_WORK: Final = frozenset({S.RUNNING, S.RUNNING_UNREGISTRABLE, S.PUBLISHING})
# The same in off.
WORK: Final = UNREGISTERED_WORK | {S.RUNNING_REGISTERED, S.PUBLISHING_REGISTERED}

_FAULT: Final = object()
# A record takes four to six steps, and looks a cell up for each: by small integers, which a dictionary would hash.
_CELLS: Final[Any] = tuple(tuple(TRANSITIONS[state].get(step, _FAULT) for step in Step) for state in State)


class LifecycleError(PermanentError):
    """A step that its state doesn't allow: a fault of the program. The process ends; its records are safe."""


@dataclass(slots=True, eq=False, repr=False)
class Entry:
    """A polled record.

    Attributes:
        partition: the assignment by which it came.
        number: its place among the records polled from it, from 0.
        offset: where it was polled.
        record: the loop's own value of it.
        size: key, value and headers, bytes.
        polled_s: when, on the clock that never steps.
        warm_up: whether it belongs to the assignment's warm-up.
        state: how far it has come; `take` changes it.
        lifetime: when its registration expires; None if it has none.
        outcome: what became of it; None while that is open.
    """

    partition: Partition
    number: int
    offset: int
    record: Any
    size: int
    polled_s: float
    warm_up: bool
    state: State = State.POLLED
    lifetime: Lifetime | None = None
    outcome: Outcome | None = None

    def __repr__(self) -> str:
        return f"{self.partition!r}@{self.offset} {self.state.name}"

    def take(self, step: Step, outcome: Outcome | None = None) -> bool:
        """Take a step, and with it an outcome if there is one; return whether it changed the state.

        Raises:
            LifecycleError: the state doesn't allow the step.
        """
        target = _CELLS[self.state][step]
        if target is IGNORED:
            return False
        if target is _FAULT:
            raise LifecycleError(f"{self!r} can't take the step {step.name}")
        self.state = target
        if outcome is not None:
            self.outcome = outcome
        return True

    def is_overdue(self, now_s: float) -> bool:
        """Return whether too little is left of a registered record's time to live to start its call."""
        return self.state in _MAY_RENEW and self.lifetime is not None and self.lifetime.start_by_s < now_s

    def refuse(self) -> bool:
        """Take the step of a refused registration, which leaves it without one; return whether it changed the state."""
        changed = self.take(Step.REFUSE)
        if changed:
            self.lifetime = None
        return changed

    def replace_outcome(self, outcome: Outcome) -> None:
        """Take another outcome, because the topic of the first one refuses the record."""
        self.outcome = outcome

    @staticmethod
    def take_all(entries: Sequence[Entry], step: Step, lifetime: Lifetime | None = None) -> None:
        """Have records take a step that changes the state of each, and with it a lifetime if there is one.

        Raises:
            LifecycleError: a state doesn't allow the step.
        """
        cells, ignored, fault = _CELLS, IGNORED, _FAULT
        for entry in entries:
            target = cells[entry.state][step]
            if target is ignored or target is fault:
                raise LifecycleError(f"{entry!r} can't take the step {step.name}")
            entry.state = target
        if lifetime is not None:
            for entry in entries:
                entry.lifetime = lifetime
