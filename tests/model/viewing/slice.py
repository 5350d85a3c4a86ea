"""The sink's slice: two sinks, a rebuild, the log under compaction, and Postgres with one backup.

Abstracted: processors and sweepers are an environment that appends waits and tombstones in any order, some of them in a
transaction that is committed or aborted later. What is promised is what the sweeper's exactness rests on: the view and
what follows its position in the log are together the truth, unless the position is refused as too old.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.explorer import State, Step
from tests.model.viewing.partition import (
    ABORTED,
    ID,
    OPEN,
    STANDS,
    STATUS,
    THERE,
    TOMBSTONE,
    WAIT,
    Rows,
    cleaned,
    read_on,
    stable_end,
    too_old,
    truth,
)
from tests.model.viewing.rebuild import rebuild_steps
from tests.model.viewing.sink import sink_steps
from tests.model.viewing.state import (
    APPENDS,
    BACKUP,
    CLOCK,
    LOG,
    POSTGRES,
    RESTORES,
    SINKS,
    changed,
)
from tests.model.viewing.sweeper import sweeper_steps


@dataclass(frozen=True, slots=True)
class Viewing:
    """The slice; the switches are the design.

    Args:
        name: of the slice, with its bounds.
        ids: wait ids.
        sinks: processes.
        appends: entries of the log, at most.
        ticks: halves of delete.retention.ms that may pass.
        transactions: whether tombstones may be in transactions that are open for a while.
        restores: of Postgres, at most.
        rebuilds: ``any time``, ``when refused`` (the position is too old) or ``never``.
        sweeps: a sweeper looks at the view, reads the tail and judges, with any delay between.
        late_first_start: there is no position yet, and the log may be old when a sink makes one.
        written: in which transactions a batch is written: ``together``, ``position first`` or ``rows first``.
    """

    name: str = "sinks"
    ids: int = 1
    sinks: int = 2
    appends: int = 3
    ticks: int = 2
    transactions: bool = True
    restores: int = 1
    rebuilds: str = "any time"
    sweeps: bool = False
    late_first_start: bool = False
    written: str = "together"
    compare_and_set: bool = True
    starts_at_progress: bool = True
    all_tombstones_of_a_batch: bool = True
    upsert_guard: bool = True
    delete_guard: bool = True
    aborted_is_skipped: bool = True
    sink_checks_the_age: bool = True
    sweeper_checks_the_age: bool = True
    age_is_checked_after_the_tail: bool = True
    time_is_that_of_the_next_record: bool = True
    rebuild_compares: bool = True
    rebuild_checks_its_age: bool = True
    rebuild_moves_the_position: bool = True

    def initial(self) -> State:
        view = () if self.late_first_start else (0, 0, self.no_rows())
        return ((), 0, view, (), 0, ((),) * self.sinks, (), (), self.appends, self.restores)

    def no_rows(self) -> Rows:
        """Return the rows of an empty view."""
        return (-1,) * self.ids

    def canonical(self, state: State) -> State:
        ordered = tuple(sorted(state[SINKS]))
        return state if ordered == state[SINKS] else changed(state, (SINKS, ordered))

    def broken(self, state: State) -> str | None:
        if not state[POSTGRES]:
            return None
        log, (position, time, rows) = state[LOG], state[POSTGRES]
        if position > len(log):
            return "the position is beyond the log"
        if self.sweeper_checks_the_age and too_old(position, time, len(log), state[CLOCK]):
            return None
        seen = read_on(rows, log, position, len(log))
        open_rows = truth(log, self.ids)
        if seen == open_rows:
            return None
        lost = any(row < 0 <= real for row, real in zip(seen, open_rows, strict=True))
        what = "P1: an open registration is in neither view nor tail" if lost else "P3: a resolved one counts as open"
        return f"{what}: view at {position} and tail give {seen}, the log {open_rows}"

    def settled(self, state: State) -> bool:
        if not state[POSTGRES]:
            return False
        log, (position, time, rows) = state[LOG], state[POSTGRES]
        if self.rebuilds == "never" and self.sink_checks_the_age and too_old(position, time, len(log), state[CLOCK]):
            return True  # it asks for a rebuild
        return bool(position == len(log) == stable_end(log) and rows == truth(log, self.ids))

    def steps(self, state: State) -> list[Step]:
        steps: list[Step] = []
        _others(self, state, steps)
        _time_and_compaction(self, state, steps)
        _backup(state, steps)
        for which in range(self.sinks):
            sink_steps(self, state, which, steps)
        if self.rebuilds != "never" and state[POSTGRES]:
            rebuild_steps(self, state, steps)
        if self.sweeps and state[POSTGRES]:
            sweeper_steps(self, state, steps)
        return steps


def _others(model: Viewing, state: State, steps: list[Step]) -> None:
    log = state[LOG]
    for at, entry in enumerate(log):
        if entry[STATUS] == OPEN:
            for does, status in (("committed", STANDS), ("aborted", ABORTED)):
                closed = (*log[:at], changed(entry, (STATUS, status)), *log[at + 1 :])
                steps.append((f"the transaction of tombstone {at} is {does}", False, changed(state, (LOG, closed))))
    if not state[APPENDS]:
        return
    for wait_id in range(model.ids):
        known = any(entry[ID] == wait_id for entry in log)
        kinds = [("registration", WAIT, STANDS)]
        if known:
            kinds.append(("tombstone", TOMBSTONE, STANDS))
        if known and model.transactions:
            kinds.append(("tombstone in an open transaction", TOMBSTONE, OPEN))
        for what, kind, status in kinds:
            entry = (kind, wait_id, status, state[CLOCK], -1, 1)
            after = changed(state, (LOG, (*log, entry)), (APPENDS, state[APPENDS] - 1))
            steps.append((f"a {what} of id {wait_id} is written at {len(log)}", True, after))


def _time_and_compaction(model: Viewing, state: State, steps: list[Step]) -> None:
    log, now = state[LOG], state[CLOCK]
    if now < model.ticks:
        steps.append(("half of delete.retention.ms passes", True, changed(state, (CLOCK, now + 1))))
    for wait_id in range(model.ids):
        after = cleaned(log, wait_id, now)
        if after != log:
            gone = [at for at, entry in enumerate(log) if entry[THERE] and not after[at][THERE]]
            steps.append((f"the cleaner passes id {wait_id}, gone is {gone}", True, changed(state, (LOG, after))))


def _backup(state: State, steps: list[Step]) -> None:
    if not state[RESTORES] or not state[POSTGRES]:
        return
    if not state[BACKUP]:
        steps.append(("Postgres is backed up", True, changed(state, (BACKUP, state[POSTGRES]))))
    elif state[BACKUP] != state[POSTGRES]:
        after = changed(state, (POSTGRES, state[BACKUP]), (BACKUP, ()), (RESTORES, state[RESTORES] - 1))
        steps.append(("Postgres is restored from the backup", True, after))
