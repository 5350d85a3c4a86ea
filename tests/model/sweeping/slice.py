"""The sweepers' slice: two sweepers, the log with its transactions, and Postgres as the view of a position.

Abstracted: the sink is one step that moves position and view on by an offset (the sink's own slice shows that it may be
seen so); a restored Postgres puts both back. Processors, and other clients with transactions of their own,
are an environment that may append anything at any time. Compaction is left to the sink's slice.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.explorer import State, Step
from tests.model.sweeping.coordinator import coordinator_steps
from tests.model.sweeping.partition import (
    ABORTED,
    ELSEWHERE,
    EXPORTED,
    FOREIGN,
    STANDS,
    TOMBSTONE,
    WAIT,
    replaced,
    stable_end,
    view_of,
)
from tests.model.sweeping.state import (
    APPENDS,
    AT,
    IDS,
    LETTERS,
    LOG,
    NO_TX,
    POSITION,
    RESTING,
    RESTORES,
    SWEEPERS,
    TX,
    changed,
    named,
)
from tests.model.sweeping.sweeper import sweeper_steps
from tests.model.sweeping.without_aborted import without_aborted

DESIGN = ("fence", "view", "end", "read", "letter", "tombstone", "commit", "answer")


@dataclass(frozen=True, slots=True)
class Sweeping:
    """The slice; the order of a sweep's steps and the switches are the design.

    Args:
        name: of the slice, with its bounds.
        waits: the registrations in the log at the beginning.
        sweepers: processes.
        faults: crashes of a sweeper, and commits whose answer doesn't come, at most; negative: without a bound.
        appends: what processors and others write at most.
        restores: of Postgres, at most.
        order: of a sweep's steps; a chunk is one row, and the next one begins at ``end``.
    """

    name: str = "sweepers"
    waits: tuple[int, ...] = (0,)
    sweepers: int = 2
    faults: int = -1
    appends: int = 2
    restores: int = 1
    order: tuple[str, ...] = DESIGN
    tail_is_read: bool = True
    tail_is_read_on: bool = True
    newer_wait_supersedes: bool = True
    end_is_awaited: bool = True
    aborted_is_skipped: bool = True
    one_transactional_id: bool = True
    unknown_commit_ends_it: bool = True
    tombstone_to_its_partition: bool = True
    processors_tombstone_to_its_partition: bool = True
    key_stays_in_its_partition: bool = True

    def initial(self) -> State:
        log = tuple((WAIT, wait_id, STANDS, 0) for wait_id in self.waits)
        transactions = (NO_TX,) if self.one_transactional_id else (NO_TX, NO_TX)
        return (log, (), 0, (RESTING,) * self.sweepers, transactions, self.faults, self.appends, self.restores)

    def canonical(self, state: State) -> State:
        state = without_aborted(state, seen=not self.aborted_is_skipped)
        ordered = tuple(sorted(state[SWEEPERS]))
        if ordered == state[SWEEPERS] or not self.one_transactional_id:
            return state
        return changed(state, (SWEEPERS, ordered))

    def broken(self, state: State) -> str | None:
        return None  # what is broken is seen when a transaction is committed

    def settled(self, state: State) -> bool:
        log = state[LOG]
        if state[POSITION] < len(log) or any(state[TX]) or view_of(log, len(log)):
            return False
        if any(entry[2] == FOREIGN for entry in log) or any(sweeper[AT] for sweeper in state[SWEEPERS]):
            return False
        # As many dead letters as registrations that an export has ended; none is doubled, as each commit has shown.
        ended = sum(entry[0] == EXPORTED and entry[2] == STANDS for entry in log)
        return bool(len(state[LETTERS]) == ended)

    def steps(self, state: State) -> list[Step]:
        steps: list[Step] = []
        _time(state, steps)
        _others(self, state, steps)
        _sink(state, steps)
        coordinator_steps(self, state, steps)
        for which in range(self.sweepers):
            sweeper_steps(self, state, which, steps)
        return steps

    def tx_of(self, which: int) -> int:
        """Return the number of a sweeper's transactional id."""
        return 0 if self.one_transactional_id else which


def _time(state: State, steps: list[Step]) -> None:
    log = state[LOG]
    for at, (kind, wait_id, status, due) in enumerate(log):
        # A later registration of an id expires later; how far clocks may differ is allowed for when due is decided.
        earlier = any(entry[0] == WAIT and entry[1] == wait_id and not entry[3] for entry in log[:at])
        if kind == WAIT and not due and not earlier:
            after = changed(state, (LOG, replaced(log, at, (kind, wait_id, status, 1))))
            steps.append((f"the time of registration {named(log, at)} is up", False, after))


def _others(model: Sweeping, state: State, steps: list[Step]) -> None:
    log, left = state[LOG], state[APPENDS]
    for at, (kind, wait_id, status, due) in enumerate(log):
        if status == FOREIGN:
            for does, decided in (("commits", STANDS), ("aborts", ABORTED)):
                after = changed(state, (LOG, replaced(log, at, (kind, wait_id, decided, due))))
                steps.append((f"the foreign transaction {does} its tombstone {named(log, at)}", False, after))
    if not left:
        return
    place = STANDS if model.processors_tombstone_to_its_partition else ELSEWHERE
    again, where = (STANDS, "") if model.key_stays_in_its_partition else (ELSEWHERE, ", in another partition")
    for wait_id in sorted(set(model.waits)):
        name = f"{IDS[wait_id]}@{len(log)}"
        for what, kind, status in (
            (f"a processor registers {name} again{where}", WAIT, again),
            (f"a processor writes the tombstone {name}", TOMBSTONE, place),
            (f"a foreign transaction writes the tombstone {name}", TOMBSTONE, FOREIGN),
        ):
            after = changed(state, (LOG, (*log, (kind, wait_id, status, 0))), (APPENDS, left - 1))
            steps.append((what, True, after))


def _sink(state: State, steps: list[Step]) -> None:
    position = state[POSITION]
    if position < stable_end(state[LOG]):
        what = f"the sink brings the view from {position} to {position + 1}"
        steps.append((what, False, changed(state, (POSITION, position + 1))))
    if state[RESTORES]:
        for earlier in range(position):
            after = changed(state, (POSITION, earlier), (RESTORES, state[RESTORES] - 1))
            steps.append((f"Postgres is restored to the view of position {earlier}", True, after))
