"""What a state of the processors' slice is made of."""

from __future__ import annotations

from typing import Any, NamedTuple

# What is known of a record in Kafka: whether a wait record of it, or what counts in its place, has been acknowledged;
# the wait ids whose last entry is a wait (bits); whether its handler has returned; whether its dead letter is in the
# log; how often it has killed its process.
REGISTERED, STANDING, DONE, LETTER, KILLS = range(5)
Fate = tuple[int, int, int, int, int]
MOST_KILLS = 4  # as far as it is counted
UNTOUCHED: Fate = (0, 0, 0, 0, 0)

# How an instance stands to the partition.
WITHOUT, OWNER, STALE = range(3)


class EntryState:
    """How far a consumed record has come; REFUSED is on its way to a dead letter since it can't be registered."""

    REGISTERING, REFUSED, HELD, RENEWING, STARTED, LETTERING = range(6)


# A consumed record: which, whether of an earlier assignment, and how far.
Entry = tuple[int, int, int]


class Instance(NamedTuple):
    """A process of the group.

    ``position``, ``confirmed`` and ``requested`` as in ``processor/assigned_partition.py``; ``asked`` is the target of
    the commit in flight (-1: none), ``applied`` whether the coordinator has done it; ``gate`` is 1 when the first
    window is open. ``queues`` hold, for each record, what the producer has not delivered yet: ``W`` a wait record,
    ``w`` one whose entry was dropped, ``R`` a renewed one, ``T`` a tombstone.
    """

    role: int
    position: int
    confirmed: int
    requested: int
    asked: int
    applied: int
    gate: int
    entries: tuple[Entry, ...]
    queues: tuple[str, ...]


# What a dead process had sent and that has not landed yet: for each record, as in the queues of an instance.
Sent = tuple[str, ...]


class State(NamedTuple):
    """The committed offset, the fates of the records, the instances (None: dead), and what may still happen.

    ``sent`` is what those who died have left on its way, each by itself; ``lingering`` how many more may leave some.
    """

    committed: int
    fates: tuple[Fate, ...]
    instances: tuple[Instance | None, ...]
    faulted: int
    crashes: int
    losses: int
    revocations: int
    renewals: int
    lingering: int
    sent: tuple[Sent, ...]


def set_at(values: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    """Return a tuple with another value in one place."""
    return (*values[:at], value, *values[at + 1 :])


def fewer(left: int) -> int:
    """Return one less of what may still happen; without a bound (negative) it stays so."""
    return left - 1 if left > 0 else left


def owned(state: State) -> bool:
    """Return whether the group has given the partition to an instance."""
    return any(instance is not None and instance.role == OWNER for instance in state.instances)


def prefix(instance: Instance) -> int:
    """Return the offset after the contiguous acknowledged registrations."""
    unsafe = [
        record
        for record, old, how in instance.entries
        if not old and how in (EntryState.REGISTERING, EntryState.REFUSED)
    ]
    return min(unsafe, default=instance.position)


def highest(instance: Instance) -> int:
    """Return the offset after the last acknowledged registration, gaps or not."""
    unsafe = [
        record
        for record, old, how in instance.entries
        if not old and how in (EntryState.REGISTERING, EntryState.REFUSED)
    ]
    safe = [record for record in range(instance.confirmed, instance.position) if record not in unsafe]
    return max(safe, default=instance.confirmed - 1) + 1
