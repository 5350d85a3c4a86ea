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

from confluent_kafka import KafkaError, KafkaException

from processor.events import Done
from processor.settlement.outcomes import Outcomes
from sink.position import Position
from tests.simulation.clients import SWEEP_URGENT, sweep
from tests.simulation.coordinator import (
    NAMES,
    State,
    Sweeper,
    Transaction,
    aborted,
    at_rest,
    coordinator_steps,
    fewer,
    named,
    number_of,
    put,
    with_transaction,
    without_entry,
)
from tests.simulation.exhaustive import Order, Step
from tests.simulation.replay import Answers, Effect, Failure, Outcome, Replays
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
    Rows,
    moment,
    read_on,
    records,
    replaced,
    stable_end,
    truth,
)
from wait_registry.records.wait_partition import wait_partitions

FENCED = Failure(KafkaException(KafkaError(KafkaError._FENCED)))
NO_ANSWER = Failure(KafkaException(KafkaError(KafkaError._TIMED_OUT)))


@dataclass(eq=False)
class SweeperWorld:
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
        self._order = Order()
        self._ids = len(WAIT_IDS)

    def initial(self) -> State:
        log = tuple(Entry(WAIT, wait_id) for wait_id in self.waits)
        return State(log, (), 0, (Sweeper(),) * self.sweepers, (), self.faults, self.appends, self.restores)

    def canonical(self, state: State) -> State:
        state = self._without_aborted(state)
        ordered = tuple(sorted(state.sweepers, key=self._order.number))
        return state._replace(sweepers=ordered) if self.alike and ordered != state.sweepers else state

    def broken(self, state: State) -> str | None:
        return None  # what is broken is seen when a transaction is committed

    def settled(self, state: State) -> bool:
        log = state.log
        if state.position < len(log) or any(each.is_open for each in state.transactions):
            return False
        if any(row >= 0 for row in truth(log, self._ids)) or stable_end(log) < len(log):
            return False
        if any(sweeper.answers for sweeper in state.sweepers):
            return False
        # As many dead letters as registrations that an export has ended; none is doubled, as each commit has shown.
        return len(state.letters) == sum(entry.kind == EXPORTED and entry.status == COMMITTED for entry in log)

    def steps(self, state: State) -> list[Step]:
        steps = [*_time(state), *self._others(state), *_sink(state), *coordinator_steps(state)]
        for which, sweeper in enumerate(state.sweepers):
            steps += self._sweeper(state, which, sweeper)
        return steps

    # ---- the sweepers

    def _sweeper(self, state: State, which: int, sweeper: Sweeper) -> Iterator[Step]:
        if not sweeper.answers and not any(row >= 0 for row in self._due(state)):
            return
        name = "" if self.alike else NAMES[which]

        def perform(state: State, effect: Effect, answers: Answers) -> Iterator[Outcome]:
            return getattr(self, f"_{effect[0]}")(state, which, answers, *effect[1:])  # type: ignore[no-any-return]

        for what, fault, after, answers, ended in self._replays.steps(
            name, ("sweep",), sweep, sweeper.answers, state, perform
        ):
            if isinstance(after, str):
                yield f"{NAMES[which]}: {what}", fault, after
            elif ended is not None:
                yield f"{NAMES[which]}: {what}, and is done", fault, at_rest(after, which)
            else:
                yield f"{NAMES[which]}: {what}", fault, put(after, which, answers=answers)
        if sweeper.answers and state.faults:
            dead = at_rest(state, which)._replace(faults=fewer(state.faults))
            yield f"{NAMES[which]} dies, what it has asked for stays on its way", True, dead

    def _due(self, state: State) -> Rows:
        return tuple(row if row >= 0 and state.log[row].due else -1 for row in self._rows(state))

    def _rows(self, state: State) -> Rows:
        return read_on((-1,) * self._ids, state.log, 0, state.position)

    # ---- effects: what happened, whether it is a fault, the state after it, the answer

    def _fence(self, state: State, which: int, _: Answers, id_: str) -> Iterator[Outcome]:
        if all(each.id != id_ for each in state.transactions):
            state = state._replace(transactions=(*state.transactions, Transaction(id_)))
        number = number_of(state, id_)
        if not state.transactions[number].is_decided:  # else the coordinator answers when the markers are written
            yield "fences", False, put(aborted(state, number), which, current=id_), None

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

    def _write(self, state: State, which: int, _: Answers, id_: str, sent: tuple[Any, ...]) -> Iterator[Outcome]:
        if state.sweepers[which].current != id_:
            yield "is fenced", False, state, FENCED
            return
        number = number_of(state, id_)
        if state.transactions[number].is_decided:
            return  # the coordinator makes it wait for the markers
        log = list(state.log)
        letters = [*state.letters]
        for kind, what, partition in sent:
            if kind == "letter":
                letters.append((what, OPEN + number))
            elif partition == NAME.partition:
                log.append(Entry(EXPORTED, what, OPEN + number))
        after = state._replace(log=tuple(log), letters=tuple(sorted(letters)))
        yield "writes", False, with_transaction(after, number, Transaction(id_, is_open=True)), None

    def _commit(self, state: State, which: int, _: Answers, id_: str) -> Iterator[Outcome]:
        if state.sweepers[which].current == id_:
            yield "asks to commit", False, put(state, which, asked=state.sweepers[which].end + 1), None
        else:
            yield "is fenced", False, state, FENCED

    def _answer(self, state: State, which: int, _: Answers, id_: str) -> Iterator[Outcome]:
        sweeper = state.sweepers[which]
        if not sweeper.asked:
            if sweeper.current == id_:
                yield "has committed", False, put(state, which, end=len(state.log)), None
            else:
                yield "is fenced", False, state, FENCED
        if state.faults:
            yield "gets no answer", True, state._replace(faults=fewer(state.faults)), NO_ANSWER

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
            seen = [each.answers[1][1][0].next_offset for each in state.sweepers if len(each.answers) > 1]
            gone = [at for at in gone if at < min([state.position, *seen])]
        for at in reversed(gone):
            state = without_entry(state, at)
        return state


def tombstone_partition(registered: int) -> int:
    """Return where the processor writes the tombstone of a registration in a partition."""
    written: list[int] = []
    outbox: Any = SimpleNamespace(
        receipt=lambda *_: SimpleNamespace(topic=NAME.topic),
        expect=lambda _: None,
        put=lambda topic, value, wait_id, partition, *_: written.append(partition),
    )
    parts: Any = SimpleNamespace()
    record = SimpleNamespace(wait_id="", wait_partition=registered, trace=None)
    entry: Any = SimpleNamespace(record=record, outcome=Done())
    Outcomes(outbox, parts, parts, NAME.topic, parts).write_tombstones([entry])
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


def _sink(state: State) -> Iterator[Step]:
    at = state.position
    if at < stable_end(state.log):
        yield f"the sink brings the tables from {at} to {at + 1}", False, state._replace(position=at + 1)
    if state.restores:
        for earlier in range(at):
            after = state._replace(position=earlier, restores=state.restores - 1)
            yield f"Postgres is restored to position {earlier}", True, after
