"""Two sweepers and one partition of the wait topic with its transactions; the sweepers' code is the product's.

The sink is one step that moves the position and the rows on by an offset, as the world of the sinks shows it may be
seen; a restored Postgres puts both back. Processors, and other clients with transactions of their own, are an
environment that may append anything at any time. Nothing is compacted, and no time passes but that of registrations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from processor.protocol.results import Done
from processor.writing.outcomes import Outcomes
from sink.position import Position
from tests.simulation.clients import SWEEP_URGENT, sweep
from tests.simulation.coordinator import Process, State, TransactionWorld, put, without_entry
from tests.simulation.exhaustive import Step, order
from tests.simulation.replay import Answers, Outcome, Replays
from tests.simulation.wait_log import (
    ABORTED,
    COMMITTED,
    ELSEWHERE,
    EXPORTED,
    FOREIGN,
    NAME,
    OPEN,
    TOMBSTONE,
    WAIT,
    WAIT_IDS,
    Entry,
    Log,
    Rows,
    moment,
    read_on,
    records,
    replaced,
    stable_end,
    truth,
)
from wait_registry.records.wait_partition import wait_partitions

NAMES = ("sweeper A", "sweeper B")


@dataclass(eq=False)
class SweeperWorld(TransactionWorld):
    """The bounds.

    Args:
        name: with the bounds, for tables.
        waits: wait IDs of the registrations in the log at the beginning.
        sweepers: processes.
        faults: deaths of a sweeper, and commits whose answer doesn't come, at most; negative: without a bound.
        appends: what processors and others write at most.
        restores: of Postgres, at most.
        alike: whether no name tells one sweeper from another.
        sees_aborted: whether sweepers act on what was aborted.
    """

    name: str = "sweepers"
    waits: tuple[int, ...] = (0,)
    sweepers: int = 2
    faults: int = -1
    appends: int = 2
    restores: int = 1
    alike: bool = True
    sees_aborted: bool = False

    def __post_init__(self) -> None:
        self._replays = Replays(SWEEP_URGENT)
        self._order = order()
        self._ids = len(WAIT_IDS)

    def initial(self) -> State:
        log = tuple(Entry(WAIT, wait_id) for wait_id in self.waits)
        return State(log, (), 0, (Process(),) * self.sweepers, (), self.faults, self.restores, self.appends)

    def canonical(self, state: State) -> State:
        state = self._without_aborted(state)
        ordered = tuple(sorted(state.processes, key=self._order.__getitem__))
        return state._replace(processes=ordered) if self.alike and ordered != state.processes else state

    def settled(self, state: State) -> bool:
        log = state.log
        if state.position < len(log) or any(each.is_open for each in state.transactions):
            return False
        if any(row >= 0 for row in truth(log, self._ids)) or stable_end(log) < len(log):
            return False
        if any(sweeper.answers for sweeper in state.processes):
            return False
        # As many dead letters as registrations that an export has ended; none is doubled, as each commit has shown.
        return len(state.sent) == sum(entry.kind == EXPORTED and entry.status == COMMITTED for entry in log)

    def steps(self, state: State) -> list[Step]:
        steps = [*_time(state), *self._others(state), *self._sink(state), *self._coordinator(state)]
        for which, sweeper in enumerate(state.processes):
            if sweeper.answers or any(row >= 0 for row in self._due(state)):
                steps += self._process(state, which, "" if self.alike else NAMES[which], "sweep", sweep)
        return steps

    # ---- the sweepers

    def _name(self, which: int) -> str:
        return NAMES[which]

    def _written(self, state: State, status: int, sent: tuple[tuple[str, Any, int], ...]) -> State:
        letters = [(what, status) for kind, what, _ in sent if kind == "letter"]
        tombstones = [
            Entry(EXPORTED, what, status)
            for kind, what, partition in sent
            if kind == "tombstone" and partition == NAME.partition
        ]
        return state._replace(log=(*state.log, *tombstones), sent=tuple(sorted((*state.sent, *letters))))

    def _problem(self, state: State, which: int, status: int) -> str | None:
        end = state.processes[which].asked - 1
        return next((why for at, own in state.sent if own == status and (why := _judged(state, at, end))), None)

    def _confirmed(self, state: State, which: int) -> State:
        return put(state, which, end=len(state.log))

    def _due(self, state: State) -> Rows:
        return tuple(row if row >= 0 and state.log[row].due else -1 for row in self._rows(state))

    def _rows(self, state: State) -> Rows:
        return read_on((-1,) * self._ids, state.log, 0, state.position)

    # ---- effects: what happened, whether it is a fault, the state after it, the answer

    def _snapshot(self, state: State, which: int, answers: Answers) -> Iterator[Outcome]:
        rows, due = self._rows(state), self._due(state)
        seen = Position(state.position, moment(0)), rows, due
        what = f"sees position {state.position} and due rows {due}"
        if all(kind != "snapshot" for kind, _ in answers):
            state = put(state, which, end=len(state.log))
        yield what, False, state, seen

    def _clock(self, state: State, which: int, _: Answers) -> Iterator[Outcome]:
        yield "clock", False, state, 0

    def _end(self, state: State, which: int, answers: Answers, stable: bool) -> Iterator[Outcome]:
        kind, listed = answers[-1]
        end = stable_end(state.log)
        if kind != "end":
            end = end if stable else len(state.log)
            yield f"lists the log's end, {end}", False, put(state, which, end=len(state.log)), end
        elif end >= listed:  # else the sweeper waits
            yield f"finds the log stable up to {listed}", False, state, listed

    def _poll(self, state: State, which: int, answers: Answers, begin: int, committed: bool) -> Iterator[Outcome]:
        end = answers[-1][1]  # a poll may bring more, but need not
        yield f"reads from {begin} to {end}", False, state, (records(state.log, begin, end, committed), end)

    # ---- the environment

    def _others(self, state: State) -> Iterator[Step]:
        log = state.log
        for at, entry in enumerate(log):
            if entry.status == FOREIGN:
                for does, decided in (("commits", COMMITTED), ("aborts", ABORTED)):
                    after = state._replace(log=replaced(log, at, entry._replace(status=decided)))
                    yield f"the foreign transaction {does} its tombstone {named(log, at)}", False, after
        if not state.appends:
            return
        for wait_id in sorted(set(self.waits)):
            home = wait_partitions([WAIT_IDS[wait_id]], 1)[0]
            registered, settled = (_status(partition) for partition in (home, tombstone_partition(home)))
            for what, kind, status in (
                ("a processor registers again", WAIT, registered),
                ("a processor writes the tombstone", TOMBSTONE, settled),
                ("a foreign transaction writes the tombstone", TOMBSTONE, FOREIGN),
            ):
                written = (*log, Entry(kind, wait_id, status))
                after = state._replace(log=written, appends=state.appends - 1)
                yield f"{what} {named(written, len(log))}", True, after

    def _without_aborted(self, state: State) -> State:
        """Count offsets without aborted entries, on which no step acts."""
        gone = [at for at, entry in enumerate(state.log) if entry.status == ABORTED]
        if self.sees_aborted:
            seen = [each.answers[1][1][0].next_offset for each in state.processes if len(each.answers) > 1]
            gone = [at for at in gone if at < min([state.position, *seen])]
        for at in reversed(gone):
            sent = tuple((offset - (offset > at), status) for offset, status in state.sent)
            state = without_entry(state, at)._replace(sent=sent)
        return state


def named(log: Log, offset: int) -> str:
    """Return how a story calls an entry of the log."""
    return f"{'ab'[log[offset].wait_id]}@{offset}"


def _judged(state: State, offset: int, end: int) -> str | None:
    """Judge a dead letter that becomes visible: of which registration, and where the log ended for its chunk."""
    log = state.log
    for other, status in state.sent:
        if other == offset and (
            status == COMMITTED or (status >= OPEN and state.transactions[status - OPEN].is_decided)
        ):
            return f"P4: registration {named(log, offset)} is exported twice"
    wait_id = log[offset].wait_id
    others = any(log[other].wait_id == wait_id for other, status in state.sent if status == COMMITTED)
    for at in range(offset + 1, end):
        if log[at].kind == EXPORTED and not others:
            continue  # the letter's own tombstone, which came before it
        if log[at].wait_id == wait_id and log[at].status in (COMMITTED, ELSEWHERE):
            return f"P3: registration {named(log, offset)} is exported although {named(log, at)} followed it"
    return None


def tombstone_partition(registered: int) -> int:
    """Return where the processor writes the tombstone of a registration in a partition."""
    written: list[int] = []
    outbox: Any = SimpleNamespace(
        expect=lambda _: None,
        put=lambda topic, value, wait_id, partition, *_: written.append(partition),
    )
    parts: Any = SimpleNamespace()
    record = SimpleNamespace(wait_id="", wait_partition=registered, trace=None)
    entry: Any = SimpleNamespace(record=record, outcome=Done())
    Outcomes(outbox, parts, NAME.topic, parts).write_tombstones([entry])
    return written[0]


def _status(partition: int) -> int:
    return COMMITTED if partition == NAME.partition else ELSEWHERE


def _time(state: State) -> Iterator[Step]:
    for at, entry in enumerate(state.log):
        # A later registration of an ID expires later; how far clocks may differ is allowed for when due is decided.
        earlier = any(e.kind == WAIT and e.wait_id == entry.wait_id and not e.due for e in state.log[:at])
        if entry.kind == WAIT and not entry.due and not earlier:
            after = state._replace(log=replaced(state.log, at, entry._replace(due=True)))
            yield f"the time of registration {named(state.log, at)} is up", False, after
