"""Two sinks, a rebuild and a sweeper's look at one partition under compaction; their code is the product's.

Processors and sweepers are an environment that appends waits and tombstones in any order, some of them in a transaction
that is committed or aborted later. What is asked in every state is what the sweeper's exactness rests on: the tables
and what follows their position in the log are together the truth, unless the sweeper refuses the position as too old.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sink.position import LogEnds, Position, PositionExpired, require_fresh
from sink.read.kafka_reader import Batch
from sweeper import export, tail
from tests.simulation import sink_calls
from tests.simulation.clients import SWEEP_URGENT, StagesOnce, sweep
from tests.simulation.exhaustive import Step, order
from tests.simulation.postgres import Tables
from tests.simulation.replay import Answers, Effect, Ended, Failure, Outcome, Replays
from tests.simulation.wait_log import (
    ABORTED,
    COMMITTED,
    NAME,
    OPEN,
    RETENTION_MS,
    TOMBSTONE,
    WAIT,
    Entry,
    Log,
    Records,
    cleaned,
    moment,
    read_on,
    records,
    replaced,
    stable_end,
    truth,
)
from wait_registry.errors import TransientError

# Within a call, what follows at once: a transaction is one moment, and listings are one.
URGENT = (
    ("progress", "clock"),
    ("progress", "lock"),
    ("clock", "end"),
    ("end", "clock"),
    ("end", "end"),
    ("end", "progress"),
    ("end", "lock"),
    ("clock", "lock"),
    ("lock", "commit"),
    ("end", "read"),
)
SINKS = ("sink A", "sink B")


class Sink(NamedTuple):
    """What a sink knows: how far it has read, the position it left, a batch; and the call that is under way."""

    read_to: int = -1
    position: Position | None = None
    batch: tuple[int, Records] | None = None
    call: str = ""
    answers: Answers = ()


OFF = Sink()


class State(NamedTuple):
    """The world: what outlives the processes, then the processes; None is one that doesn't run."""

    log: Log
    clock: int
    tables: Tables
    backup: Tables | None
    mirror: int
    sinks: tuple[Sink, ...]
    rebuild: Answers | None
    sweep: Answers | None
    appends: int
    restores: int


@dataclass(eq=False)
class SinkWorld:
    """The bounds.

    Args:
        name: with the bounds, for tables.
        ids: wait IDs.
        sinks: processes.
        appends: entries of the log, at most.
        ticks: halves of delete.retention.ms that may pass.
        transactions: whether tombstones may be in transactions that are open for a while.
        restores: of Postgres, at most.
        rebuilds: ``any time``, ``when refused`` (the position is too old) or ``never``.
        sweeps: a sweeper looks at the tables, reads the tail and judges, with any delay between.
        late_first_start: there is no position yet, and the log may be old when a sink makes one.
        mirrored: keep the offset that the sink mirrors to a consumer group, which no real code reads.
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
    mirrored: bool = False

    def __post_init__(self) -> None:
        self._replays = Replays(URGENT)
        self._sweeps = Replays((*SWEEP_URGENT, ("fence", "snapshot"), ("clock", "clock")))
        self._order = order()
        self._writer = StagesOnce(NAME.topic)
        StagesOnce.known = {}

    def initial(self) -> State:
        position = None if self.late_first_start else Position(0, moment(0))
        tables = Tables(position, (-1,) * self.ids)
        return State((), 0, tables, None, 0, (OFF,) * self.sinks, None, None, self.appends, self.restores)

    def canonical(self, state: State) -> State:
        ordered = tuple(sorted(state.sinks, key=self._order.__getitem__))
        return state if ordered == state.sinks else state._replace(sinks=ordered)

    def broken(self, state: State) -> str | None:
        log, (position, rows) = state.log, state.tables
        if position is None:
            return None
        if position.next_offset > len(log):
            return "the position is beyond the log"
        try:
            seen_at = tail.Position(position.next_offset, position.position_time)
            vars(export)["require_not_overtaken"](seen_at, len(log), moment(state.clock), RETENTION_MS)
        except tail.PositionOvertaken:
            return None
        seen, real = read_on(rows, log, position.next_offset, len(log)), truth(log, self.ids)
        if seen == real:
            return None
        lost = any(row < 0 <= true for row, true in zip(seen, real, strict=True))
        what = "P1: an open registration is in neither tables nor tail" if lost else "P3: a resolved one counts as open"
        return f"{what}: tables at {position.next_offset} and tail give {seen}, the log {real}"

    def settled(self, state: State) -> bool:
        position, rows = state.tables
        if position is None:
            return False
        if self.rebuilds == "never" and _is_refused(state):
            return True  # the sink asks for a rebuild
        end = len(state.log)
        return position.next_offset == end == stable_end(state.log) and rows == truth(state.log, self.ids)

    def steps(self, state: State) -> list[Step]:
        steps = [*self._others(state), *self._time_and_compaction(state), *self._backup(state)]
        for which, sink in enumerate(state.sinks):
            steps += self._sink(state, which, sink)
        if state.tables.position is not None:
            if self.rebuilds != "never":
                steps += self._rebuild(state)
            if self.sweeps:
                steps += self._sweep(state)
        return steps

    # ---- the sinks

    def _sink(self, state: State, which: int, sink: Sink) -> Iterator[Step]:
        for call, details, run in self._calls(state, sink):
            went_on = self._replays.steps("", (call, *details), run, sink.answers, state, self._perform)
            for what, fault, after, answers, ended in went_on:
                left = sink._replace(call=call, answers=answers)
                if ended is not None:
                    left = self._ended(sink, call.partition(" ")[0], answers, ended)
                    what += f": {type(ended.error).__name__}" if ended.error else ""
                mirror = after.mirror
                if self.mirrored and call == "apply" and left is not OFF:
                    mirror = left.read_to
                yield f"{SINKS[which]} {call}: {what}", fault, _with_sink(after, which, left)._replace(mirror=mirror)
        if sink is not OFF:
            yield f"{SINKS[which]} dies", True, _with_sink(state, which, OFF)

    def _calls(self, state: State, sink: Sink) -> list[tuple[str, tuple[Any, ...], Callable[[], Any]]]:
        if sink.call:
            names = [sink.call]
        elif sink == OFF:
            names = ["start"]
        elif sink.batch is not None:
            names = ["apply"]
        else:
            names = ["refresh", *(f"read {most}" for most in range(1, stable_end(state.log) - sink.read_to + 1))]
        calls: dict[str, tuple[tuple[Any, ...], Callable[[], Any]]] = {
            "start": ((), lambda: sink_calls.start(self._writer)),
            "refresh": ((sink.position,), lambda: sink_calls.refresh(self._writer, sink.position)),
            "apply": ((sink.position, sink.batch), lambda: sink_calls.apply(self._writer, sink.position, sink.batch)),
        }
        return [(name, *calls.get(name, ((sink.read_to,), partial(_read, sink, name)))) for name in names]

    def _ended(self, sink: Sink, call: str, answers: Answers, ended: Ended) -> Sink:
        """Return what a sink knows after a call; after an error it ends."""
        if ended.error is not None:
            return OFF
        if call == "start":
            read_to, position = ended.value
            return Sink(read_to, position)
        if call == "read":
            end = ended.value.next_positions[NAME]
            return sink._replace(read_to=end, batch=(end, answers[-1][1]))
        return sink._replace(position=ended.value.positions[NAME], batch=None, call="", answers=())

    # ---- rebuild and sweeper

    def _rebuild(self, state: State) -> Iterator[Step]:
        if state.rebuild is not None:
            yield "the rebuild dies", True, state._replace(rebuild=None)
        if state.rebuild is not None or self.rebuilds == "any time" or _is_refused(state):
            yield from self._next(state, "rebuild", "the rebuild", self._replays, sink_calls.rebuild_tables)

    def _sweep(self, state: State) -> Iterator[Step]:
        if state.sweep is not None or any(row >= 0 for row in state.tables.rows):
            yield from self._next(state, "sweep", "the sweeper", self._sweeps, sweep)

    def _next(self, state: State, field: str, name: str, replays: Replays, run: Callable[[], None]) -> Iterator[Step]:
        """Yield what a call does next whose answers are in a field of the state."""
        given = getattr(state, field) or ()
        for what, fault, after, answers, ended in replays.steps("", (field,), run, given, state, self._perform):
            if ended is not None and ended.error is not None:
                what += f": {type(ended.error).__name__}"
            if not isinstance(after, str):
                after = after._replace(**{field: None if ended else answers})
            yield f"{name}: {what}", fault, after

    # ---- effects

    def _perform(self, state: State, effect: Effect, answers: Answers) -> Iterator[Outcome]:
        kind, *details = effect
        answer: Any = None
        if kind == "commit":
            state = state._replace(tables=details[0])
            what = f"commits {_described(details[0])}"
        elif kind == "write":
            yield self._judged(state, details[1], answers)
            return
        else:
            answer = self._answer(state, kind, details)
            what = f"{kind} {answer}" if kind in ("end", "clock") else kind
        yield what, False, state, answer

    def _answer(self, state: State, kind: str, details: list[Any]) -> Any:
        log, tables = state.log, state.tables
        if kind == "read":
            begin, end, committed_only = details
            return records(log, begin, end, committed_only)
        if kind == "poll":
            return records(log, details[0], stable_end(log), details[1]), stable_end(log)
        answers = {
            "clock": state.clock,
            "progress": tables.position,
            "lock": tables,
            "mirror": state.mirror,
            "snapshot": (tables.position, tables.rows, tables.rows),
            "end": stable_end(log) if details == [True] else len(log),
            "fence": None,
        }
        return answers[kind]

    def _judged(self, state: State, sent: tuple[tuple[str, int, int], ...], answers: Answers) -> Outcome:
        """Judge an export by the log's end that the sweeper has asked for last; whatever it is, it isn't committed."""
        end = [answer for kind, answer in answers if kind == "end"][-1]
        real = truth(state.log[:end], self.ids)
        if any(kind == "letter" and offset not in real for kind, offset, _ in sent):
            return "exports", False, "P3: a registration is exported although an entry followed it", None
        return "exports what is open", False, state, Failure(TransientError("the small world ends here"))

    # ---- the environment

    def _others(self, state: State) -> Iterator[Step]:
        log = state.log
        for at, entry in enumerate(log):
            if entry.status == OPEN:
                for does, status in (("committed", COMMITTED), ("aborted", ABORTED)):
                    after = state._replace(log=replaced(log, at, entry._replace(status=status)))
                    yield f"the transaction of tombstone {at} is {does}", False, after
        if not state.appends:
            return
        for wait_id in range(self.ids):
            kinds = [("registration", WAIT, COMMITTED)]
            if any(entry.wait_id == wait_id for entry in log):
                kinds.append(("tombstone", TOMBSTONE, COMMITTED))
                if self.transactions:
                    kinds.append(("tombstone in an open transaction", TOMBSTONE, OPEN))
            for what, kind, status in kinds:
                written = (*log, Entry(kind, wait_id, status, state.clock))
                after = state._replace(log=written, appends=state.appends - 1)
                yield f"a {what} of ID {wait_id} is written at {len(log)}", True, after

    def _time_and_compaction(self, state: State) -> Iterator[Step]:
        if state.clock < self.ticks:
            yield "half of delete.retention.ms passes", True, state._replace(clock=state.clock + 1)
        for wait_id in range(self.ids):
            after = cleaned(state.log, wait_id, state.clock)
            if after != state.log:
                gone = [at for at, entry in enumerate(state.log) if entry.there and not after[at].there]
                yield f"the cleaner passes ID {wait_id}, gone is {gone}", True, state._replace(log=after)

    def _backup(self, state: State) -> Iterator[Step]:
        if not state.restores or state.tables.position is None:
            return
        if state.backup is None:
            yield "Postgres is backed up", True, state._replace(backup=state.tables)
        elif state.backup != state.tables:
            after = state._replace(tables=state.backup, backup=None, restores=state.restores - 1)
            yield "Postgres is restored from the backup", True, after


def _read(sink: Sink, call: str) -> Batch:
    return sink_calls.read(sink.read_to, int(call.partition(" ")[2]))


def _with_sink(state: State, which: int, sink: Sink) -> State:
    return state._replace(sinks=(*state.sinks[:which], sink, *state.sinks[which + 1 :]))


def _is_refused(state: State) -> bool:
    """Return whether a sink refuses the position as too old."""
    assert state.tables.position is not None
    try:
        ends = LogEnds({NAME: len(state.log)}, moment(state.clock))
        require_fresh({NAME: state.tables.position}, ends, RETENTION_MS)
    except PositionExpired:
        return True
    return False


def _described(tables: Tables) -> str:
    assert tables.position is not None
    return f"position {tables.position.next_offset}, rows {tables.rows}"
