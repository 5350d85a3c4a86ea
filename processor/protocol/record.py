"""The life of a record between its poll and its outcome: a total table of states and steps.

Only `Entry.take` changes a record's state. Read a row of `TRANSITIONS` as: in this state, this step leads to that one.

    POLLED --register--> REGISTERING --registered--> HELD --release--> READY_REGISTERED --start--> RUNNING_REGISTERED
      |                                                ^                    |                        |          |
      |                                          RENEWING <--overdue--------+                     succeed      fail
      |                                                                                              |          |
      +--release--> READY --start--> RUNNING --succeed--> SETTLED <---published--- PUBLISHING_REGISTERED
                      |                 | \\
                   register          register fail--> PUBLISHING --published--> SETTLED
                      |                 |
              READY_REGISTERING  RUNNING_REGISTERING --succeed--> DONE_REGISTERING --registered--> SETTLED

A record that the next owner of its partition handles is DROPPED. Late reports and late ends are normal, and are rows of
the table. What can't happen is a fault of the program and ends the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final

from processor.protocol.events import Lifetime, Outcome
from processor.protocol.partition import Partition
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

# Every pair of a state and a step that isn't listed is a fault.
TRANSITIONS: Final[dict[State, dict[Step, State | None]]] = {
    S.POLLED: {
        Step.REGISTER: S.REGISTERING,
        Step.RELEASE: S.READY,
        Step.FAIL: S.PUBLISHING,  # malformed
        Step.REFUSE: S.READY_UNREGISTRABLE,  # or it is called without a registration
        Step.DROP: S.DROPPED,
    },
    S.REGISTERING: {
        Step.REGISTERED: S.HELD,
        Step.REFUSE: S.POLLED,  # it is dead-lettered, or called without a registration
        Step.DROP: S.DROPPED,
    },
    S.HELD: {
        Step.RELEASE: S.READY_REGISTERED,
        Step.OVERDUE: S.RENEWING,
        Step.DROP: S.DROPPED,
        Step.ABANDON: S.DROPPED,
    },
    S.READY: {Step.REGISTER: S.READY_REGISTERING, Step.START: S.RUNNING, Step.DROP: S.DROPPED},
    S.READY_REGISTERING: {
        Step.REGISTERED: S.READY_REGISTERED,
        Step.REFUSE: S.READY_UNREGISTRABLE,
        Step.START: S.RUNNING_REGISTERING,
        Step.DROP: S.DROPPED,
    },
    S.READY_REGISTERED: {Step.OVERDUE: S.RENEWING, Step.START: S.RUNNING_REGISTERED, Step.DROP: S.DROPPED},
    S.READY_UNREGISTRABLE: {Step.START: S.RUNNING_UNREGISTRABLE, Step.DROP: S.DROPPED},
    # A second registration may come after the next owner's tombstone, and then only our tombstone ends it. Where a
    # commit passes settled records only, the record is abandoned all the same: the next owner calls it.
    S.RENEWING: {Step.REGISTERED: S.HELD, Step.DROP: IGNORED, Step.ABANDON: S.DROPPED},
    S.RUNNING: {
        Step.REGISTER: S.RUNNING_REGISTERING,
        Step.SUCCEED: S.SETTLED,
        Step.FAIL: S.PUBLISHING,
        Step.DROP: S.DROPPED,
        Step.ABANDON: S.DROPPED,
    },
    S.RUNNING_REGISTERING: {
        Step.REGISTERED: S.RUNNING_REGISTERED,
        Step.REFUSE: S.RUNNING_UNREGISTRABLE,
        Step.SUCCEED: S.DONE_REGISTERING,
        Step.FAIL: S.PUBLISHING_REGISTERING,
        Step.DROP: S.DROPPED,
        Step.ABANDON: S.DROPPED,
    },
    S.RUNNING_REGISTERED: {
        Step.SUCCEED: S.SETTLED,
        Step.FAIL: S.PUBLISHING_REGISTERED,
        Step.DROP: IGNORED,  # the outcome of this call settles the registration
        Step.ABANDON: S.DROPPED,
    },
    S.RUNNING_UNREGISTRABLE: {
        Step.SUCCEED: S.SETTLED,
        Step.FAIL: S.PUBLISHING,
        Step.DROP: S.DROPPED,
        Step.ABANDON: S.DROPPED,
    },
    S.DONE_REGISTERING: {Step.REGISTERED: S.SETTLED, Step.REFUSE: S.SETTLED, Step.DROP: IGNORED},
    S.PUBLISHING: {Step.PUBLISHED: S.SETTLED, Step.DROP: IGNORED, Step.ABANDON: S.DROPPED},
    S.PUBLISHING_REGISTERING: {
        Step.REGISTERED: S.PUBLISHING_REGISTERED,
        Step.REFUSE: S.PUBLISHING,
        Step.PUBLISHED: S.DONE_REGISTERING,
        Step.DROP: IGNORED,
        Step.ABANDON: S.DROPPED,
    },
    S.PUBLISHING_REGISTERED: {Step.PUBLISHED: S.SETTLED, Step.DROP: IGNORED, Step.ABANDON: S.DROPPED},
    S.SETTLED: {Step.DROP: IGNORED},
    # The report of its wait record, and the end of its cancelled call, come after the partition has gone.
    S.DROPPED: {
        Step.PUBLISHED: IGNORED,
        Step.REGISTERED: IGNORED,
        Step.REFUSE: IGNORED,
        Step.SUCCEED: IGNORED,
        Step.FAIL: IGNORED,
        Step.ABANDON: IGNORED,
        Step.DROP: IGNORED,
    },
}

# Its call hasn't started, so the next owner can have it.
UNSTARTED: Final = frozenset(
    {S.POLLED, S.REGISTERING, S.HELD, S.READY, S.READY_REGISTERING, S.READY_REGISTERED, S.READY_UNREGISTRABLE}
)
RUNNING: Final = frozenset({S.RUNNING, S.RUNNING_REGISTERING, S.RUNNING_REGISTERED, S.RUNNING_UNREGISTRABLE})
# It stays with this process when its partition is given up, unless commits pass settled records only.
KEPT: Final = frozenset({S.RENEWING, S.RUNNING_REGISTERED})
# Its wait record is on its way.
IN_FLIGHT: Final = frozenset(
    {
        S.REGISTERING,
        S.READY_REGISTERING,
        S.RENEWING,
        S.RUNNING_REGISTERING,
        S.DONE_REGISTERING,
        S.PUBLISHING_REGISTERING,
    }
)

# It is worked on, and the next owner of its partition would handle it again.
UNREGISTERED_WORK: Final = frozenset({S.RUNNING, S.RUNNING_UNREGISTRABLE, S.PUBLISHING})
# The same where a commit passes settled records only.
WORK: Final = UNREGISTERED_WORK | {S.RUNNING_REGISTERED, S.PUBLISHING_REGISTERED}

_FAULT: Final = -1
_SAME: Final = -2


def _cell(state: State, step: Step) -> int:
    row = TRANSITIONS[state]
    if step not in row:
        return _FAULT
    target = row[step]
    return _SAME if target is None else int(target)


# Rows of small integers: a record takes four to six steps, and looks a cell up for each.
_CELLS: Final = tuple(tuple(_cell(state, step) for step in Step) for state in State)
_STATES: Final = tuple(State)


class LifecycleError(PermanentError):
    """A step that its state doesn't allow: a fault of the program. The process ends; its records are safe."""


class Entry:
    """A polled record.

    Args:
        partition: the assignment by which it came.
        number: its place among the records polled from it, from 0.
        offset: where it was polled.
        record: the shell's own value of it.
        size: key, value and headers, bytes.
        polled_s: when, on the clock that never steps.
        warm_up: whether it belongs to the assignment's warm-up.
    """

    __slots__ = (
        "lifetime",
        "number",
        "offset",
        "outcome",
        "partition",
        "polled_s",
        "record",
        "size",
        "state",
        "warm_up",
    )

    def __init__(
        self,
        partition: Partition,
        number: int,
        offset: int,
        record: Any,
        size: int,
        polled_s: float,
        warm_up: bool,
    ) -> None:
        self.partition = partition
        self.number = number
        self.offset = offset
        self.record = record
        self.size = size
        self.polled_s = polled_s
        self.warm_up = warm_up
        self.state = _POLLED
        self.lifetime: Lifetime | None = None
        self.outcome: Outcome | None = None

    def __repr__(self) -> str:
        return f"{self.partition!r}@{self.offset} {self.state.name}"

    def take(self, step: Step) -> bool:
        """Take a step; return whether it changed the state.

        Raises:
            LifecycleError: the state doesn't allow the step.
        """
        target = _CELLS[self.state][step]
        if target >= 0:
            self.state = _STATES[target]
            return True
        if target == _FAULT:
            raise LifecycleError(f"{self!r} can't take the step {step.name}")
        return False


def take_all(entries: Iterable[Entry], step: Step) -> None:
    """Have records take a step that changes the state of each.

    Raises:
        LifecycleError: a state doesn't allow the step.
    """
    cells, states = _CELLS, _STATES
    for entry in entries:
        target = cells[entry.state][step]
        if target < 0:
            raise LifecycleError(f"{entry!r} can't take the step {step.name}")
        entry.state = states[target]


_POLLED: Final = State.POLLED
