"""One partition, one or two records, and processes with the real engine: every order of steps.

A state is a copy of everything, with live engines in it; two copies that nothing can tell apart are one state. The
processes and the oracle are those of the seeds: what a seed leaves to chance is tried here, each way.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from processor.protocol.events import CommitAnswered, Instant
from processor.protocol.partition import PartitionError
from processor.protocol.record import LifecycleError
from tests.simulation.choices import CHOICES
from tests.simulation.exhaustive import Step
from tests.simulation.messages import Dead, Killed
from tests.simulation.process import Process
from tests.simulation.run import START_MS
from tests.simulation.snapshot import digest, packed
from tests.simulation.world import Breach, Committed, Nature, World
from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings.processor import Ordering

PLACE = ("t", 0)
# Also more than the time in which a registered record must start.
LONG_S = 41.0
# More than any interval; twice that is more than the time for which a confirmed commit shows whose a partition is.
SHORT_S = 3.0
CALLED_AGAIN = "a record is called again"
LEFT_TO_EXPIRE = "a record without an outcome is left to expire"
REGISTERED_LATE = "a settled record is registered by a process that isn't its owner"
Action = tuple[str, bool, Callable[[], Any]]


class Clock:
    """The time of a scene."""

    def __init__(self) -> None:
        self.s = 0.0

    def now(self) -> Instant:
        """Return the present moment."""
        return Instant(START_MS + int(self.s * 1000), self.s)


@dataclass
class Scene:
    """All that a step may change."""

    world: World
    clock: Clock
    processes: list[Process] = field(default_factory=list)
    dead: list[Dead] = field(default_factory=list)
    lives: int = 0
    deaths: int = 0
    moves: int = 0
    losses: int = 0
    delays: int = 0


class Situation:
    """A state: a copy of the scene; equal to others that nothing can tell apart."""

    __slots__ = ("broken", "digest", "scene", "settled", "unsettled", "written")

    def __init__(self, scene: Scene, at_rest: bool, calm: bool) -> None:
        self.scene: Scene | None = scene
        world = scene.world
        parts = (world, scene.processes, scene.dead, scene.lives, scene.deaths, scene.moves, scene.losses, scene.delays)
        self.digest = digest(parts, scene.clock.s)
        # What the last step has written to the wait topic: whether each entry is a wait record.
        self.written = tuple(entry.outcome is None for entry in world.wait_log)
        world.wait_log.clear()
        self.unsettled = [record for record in world.records() if not world.settled(record)]
        self.broken: str | None = None
        try:
            world.judge_end(calm) if at_rest else world.judge_calls()
        except Breach as breach:
            self.broken = str(breach)
        self.settled = at_rest and self.broken is None

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Situation) and self.digest == other.digest


@dataclass(eq=False)
class ProcessorWorld:
    """The bounds.

    Args:
        name: with the bounds, for tables.
        modes: of the first process, the second one, and so on; the last one's are those of all later ones.
        bounds: their `uncommitted_max`, likewise.
        before: what an owner before them has committed, if there was one.
        natures: what each record may be; the first step decides.
        late: whether the records are produced after the first assignment, so that no warm-up has them.
        slots: how many calls may run in a process.
        ordering: which records they handle in order.
        hold: whether they call a record that is too large to register.
        deaths: of processes, at most.
        moves: of the partition, in an orderly way, at most.
        losses: of the partition, of which its owner hears later, at most.
        delays: how often time passes while a request or an answer is on its way, at most.
        calm: whether the answers of last commits arrive, and nothing else may go wrong.
        passes: how time passes, s.
        answered: whether each answer of a commit arrives.
        reaches: states of records, and sentences of `reached`, that must be seen.
        metadata: whether commits have any.
        unknown_ends: whether the log's end may be unknown at an assignment.
        markers: how many offsets before the first record, between two and behind the last are no records.
    """

    name: str
    modes: tuple[RegistrationMode, ...]
    bounds: tuple[int, ...] = (8,)
    before: Committed | None = None
    natures: tuple[tuple[Nature, ...], ...] = ((Nature.FAST,),)
    late: bool = False
    slots: int = 1
    ordering: Ordering = Ordering.UNORDERED
    hold: bool = False
    deaths: int = 0
    moves: int = 0
    losses: int = 0
    delays: int = 0
    calm: bool = False
    passes: tuple[float, ...] = (LONG_S,)
    metadata: bool = True
    unknown_ends: bool = False
    markers: int = 0
    answered: bool = False
    reaches: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.reached: set[str] = set()

    # ---- the model

    def initial(self) -> Situation:
        return self._situation(self._scene([]))

    def canonical(self, state: Situation) -> Situation:
        return state

    def broken(self, state: Situation) -> str | None:
        return state.broken

    def settled(self, state: Situation) -> bool:
        return state.settled

    def steps(self, state: Situation) -> list[Step]:
        assert state.scene is not None, "the steps of a state are asked once"
        scene, state.scene = state.scene, None
        if not scene.processes:
            return [self._begun(natures) for natures in product(*self.natures)]
        steps: list[Step] = []
        copy = packed(scene)
        number, count = 0, 1
        while number < count:
            for _ in CHOICES.scripts():
                scene = pickle.loads(copy)
                actions = list(self._actions(scene))
                count = len(actions)
                step = self._taken(scene, *actions[number])
                if not (self.answered and self._lost_an_answer(scene)):
                    steps.append(step)
            number += 1
        return steps

    # ---- a step

    def _begun(self, natures: tuple[Nature, ...]) -> Step:
        offsets = range(self.markers, (self.markers + 1) * (len(natures) + 1), self.markers + 1)
        scene = self._scene(list(zip(offsets, natures, strict=False)))
        self._give(scene, None)
        return f"the records are {', '.join(nature.value for nature in natures)}", False, self._situation(scene)

    def _scene(self, log: list[tuple[int, Nature]]) -> Scene:
        ends = float(self.unknown_ends)
        world = World({PLACE: log}, metadata=self.metadata, unknown_ends=ends, markers=self.markers)
        if self.late and log:
            world.produced[PLACE] = 0
        if self.before is not None:
            world.committed[PLACE] = self.before
        return Scene(world, Clock(), [], [], 0, self.deaths, self.moves, self.losses, self.delays)

    def _situation(self, scene: Scene) -> Situation:
        world = scene.world
        unread = scene.dead or world.produced or not scene.processes
        at_rest = not unread and not any(process.busy() for process in scene.processes) and world.all_committed()
        return Situation(scene, at_rest, self.calm)

    def _taken(self, scene: Scene, what: str, fault: bool, action: Callable[[], Any]) -> Step:
        try:
            action()
        except Breach as breach:
            return what, fault, str(breach)
        except (LifecycleError, PartitionError) as error:
            return what, fault, f"{type(error).__name__}: {error}"
        self._note(scene)
        story = "; ".join(line.strip() for line in scene.world.story)
        scene.world.story.clear()
        self._forget_idle(scene)
        return f"{what}: {story}" if story else what, fault, self._situation(scene)

    def _lost_an_answer(self, scene: Scene) -> bool:
        owner = scene.world.owner[PLACE]
        answers = [answer for each in scene.processes if each.number == owner for answer in each.requests.answers]
        return any(isinstance(answer, CommitAnswered) and answer.failed for answer in answers)

    def _note(self, scene: Scene) -> None:
        world = scene.world
        for process in scene.processes:
            self.reached.update(entry.state.name for entry in process.engine.records)
        for record in world.records():
            registered, settled = bool(world.registrations(record)), world.settled(record)
            if world.calls.get(record, 0) > 1:
                self.reached.add(CALLED_AGAIN)
            if registered and not settled and not any(process.busy() for process in scene.processes):
                self.reached.add(LEFT_TO_EXPIRE)
            if settled and registered and record in world.may_be_left:
                self.reached.add(REGISTERED_LATE)

    def _forget_idle(self, scene: Scene) -> None:
        owner = scene.world.owner[PLACE]
        scene.processes = [each for each in scene.processes if each.number == owner or each.busy()]

    def _actions(self, scene: Scene) -> Iterator[Action]:
        for process in scene.processes:
            for step in process.steps():
                yield f"{process.number} {step.__name__}", False, partial(self._do, scene, process, step)
        pending = any(process.requests.pending() for process in scene.processes)
        if not pending or scene.delays:
            for duration_s in self.passes:
                yield f"{duration_s:g} s pass", pending, partial(self._pass, scene, duration_s, pending)
        if scene.world.produced:
            yield "the records are produced", False, scene.world.produced.clear
        for dead in scene.dead:
            yield "what a dead process has sent never arrives", False, partial(scene.dead.remove, dead)
            for queue in dead.queues:
                if queue:
                    yield "what a dead process has sent arrives", False, partial(self._arrive, scene, dead, queue)
        yield from self._faults(scene)

    def _faults(self, scene: Scene) -> Iterator[Action]:
        if scene.deaths:
            for process in scene.processes:
                yield f"{process.number} dies", True, partial(self._die, scene, process)
        owner = next(each for each in scene.processes if each.number == scene.world.owner[PLACE])
        if scene.moves:
            for flush in (True, False)[: 1 if self.calm else 2]:
                what = f"{owner.number} gives the partition up{' after a flush' if flush else ''}"
                yield what, True, partial(self._move, scene, owner, flush)
        if scene.losses:
            for unheard_s in (0.0, 2 * self.passes[0]):
                what = f"{owner.number} loses the partition, and hears of it after {unheard_s:g} s"
                yield what, True, partial(self._lose, scene, owner, unheard_s)

    def _pass(self, scene: Scene, duration_s: float, pending: bool) -> None:
        scene.delays -= pending
        scene.clock.s += duration_s

    def _do(self, scene: Scene, process: Process, step: Callable[[], None]) -> None:
        try:
            step()
        except Killed:
            self._kill(scene, process)

    # ---- deaths and the group

    def _die(self, scene: Scene, process: Process) -> None:
        scene.deaths -= 1
        self._kill(scene, process)

    def _kill(self, scene: Scene, process: Process) -> None:
        dead = process.die()
        if any(dead.queues):
            scene.dead.append(dead)
        scene.processes.remove(process)
        if scene.world.owner[PLACE] == process.number:
            self._give(scene, process)

    def _arrive(self, scene: Scene, dead: Dead, queue: deque[Any]) -> None:
        dead.arrive(queue, scene.world, scene.clock.now().wall_ms)
        if not any(dead.queues):
            scene.dead.remove(dead)

    def _move(self, scene: Scene, owner: Process, flush: bool) -> None:
        scene.moves -= 1
        self._do(scene, owner, partial(owner.revoke, [PLACE], flush))
        if owner in scene.processes:
            self._give(scene, owner)

    def _lose(self, scene: Scene, owner: Process, unheard_s: float) -> None:
        scene.losses -= 1
        owner.lose(PLACE, unheard_s)
        self._give(scene, owner)

    def _give(self, scene: Scene, former: Process | None) -> None:
        """Give the partition to another process, to one that has work left if there is one."""
        successor = next((each for each in scene.processes if each is not former), None)
        if successor is None:
            mode = self.modes[min(scene.lives, len(self.modes) - 1)]
            bound = self.bounds[min(scene.lives, len(self.bounds) - 1)]
            scene.lives += 1
            ordering = self.ordering if mode is RegistrationMode.OFF else Ordering.UNORDERED
            own = (mode, bound, self.slots, self.calm, ordering, self.hold)
            successor = Process(scene.lives, scene.world, *own, scene.clock.now, CHOICES)
            scene.processes.append(successor)
        scene.world.give(PLACE, successor.number)
        successor.assign(PLACE)
