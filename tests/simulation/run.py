"""One simulated run from a seed: two or three processes, faults, and a judgment at the end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

from processor.protocol.events import Instant
from tests.simulation.messages import Dead, Killed
from tests.simulation.operators import Operators
from tests.simulation.process import Process
from tests.simulation.seen import SeenWorld
from tests.simulation.world import RETRIES, Breach, Nature
from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings.processor import Ordering

MODES = tuple(RegistrationMode)
START_MS = 1_700_000_000_000
NATURES = (
    *(Nature.FAST, Nature.FAST, Nature.FAST, Nature.SLOW),
    *(Nature.FAILING, Nature.FLAKY, Nature.TOO_LARGE, Nature.MALFORMED),
)
REST_STEPS = 20_000


class Run:
    """A seed's run. ``story`` has a line per step.

    Args:
        seed: decides everything.
        most_records: per partition.
        most_steps: before the faults end and everything comes to rest.
    """

    def __init__(self, seed: int, most_records: int = 12, most_steps: int = 400) -> None:
        self._random = random = Random(seed)
        self._s = 0.0
        self._modes = random.choice([(mode,) for mode in MODES] + [MODES])
        self._bounds = random.choice([(4,), (8,), (200,), (3, 12), (3, 12)])
        self._slots = random.choice([1, 3])
        self._calm = random.random() < 0.4
        deadly = not self._calm and RegistrationMode.OFF not in self._modes and random.random() < 0.4
        logs = {("t", number): self._log(random, most_records) for number in range(2)}
        logs[RETRIES] = []
        self.world = SeenWorld(logs, now_ms=lambda: self._now().wall_ms)
        if deadly:
            log = self.world.logs["t", 0]
            at = random.randrange(len(log))
            log[at] = (log[at][0], Nature.DEADLY)
        if random.random() < 0.7:
            self.world.produced = {place: random.randrange(len(log)) for place, log in self.world.logs.items() if log}
        # Without metadata, `off` can't know that another mode was before.
        self.world.metadata = RegistrationMode.OFF in self._modes or random.random() < 0.8
        self.world.unknown_ends = random.choice([0.0, 0.0, 0.3])
        self._bias(random)
        self.story = self.world.story
        self._steps = min(most_steps, random.randint(20, 400))
        self._ordering = random.choice(list(Ordering)) if RegistrationMode.OFF in self._modes else Ordering.UNORDERED
        self._hold = random.random() < 0.3
        self.world.refuses_letters = not self._calm and random.random() < 0.2
        # Of its own, so that older seeds stay what they were.
        own = Random(-1 - seed)
        self._cancel_after_s = own.choice([None, None, 1.0])
        self._routes = own.choice([None, None, {0: 1}, {0: 1, 1: 1}])
        self.world.markers = own.choice([0, 1, 3])
        self.world.ahead_ms = own.choice([0, 0, 10**12])
        self._acts = 0.0 if deadly else Random(-2 - seed).choice([0.0, 0.0, 0.01, 0.05])
        self._operators = Operators(self.world, Random(-3 - seed), Random(-4 - seed))
        self._processes: list[Process] = []
        self._dead: list[Dead] = []
        self._lives = 0

    def _log(self, random: Random, most: int) -> list[tuple[int, Nature]]:
        offset, log = 0, []
        for _ in range(min(most, random.randint(1, 12))):
            offset += random.choice([1, 1, 1, 2, 7])
            log.append((offset, random.choice(NATURES)))
        return log

    def _bias(self, random: Random) -> None:
        """Decide how uneven this run is: bursts, rare steps, slow or fast time."""
        self._stay = random.choice([0.0, 0.5, 0.9])
        self._faults = random.choice([0.02, 0.06, 0.15])
        self._passes = random.choice([(0.0, 0.001, 0.01, 0.3), (0.0, 0.0, 0.01), (0.01, 0.3, 0.6)])
        self._rare = {name for name in STEPS if random.random() < 0.2}
        self._before: tuple[Process, str] | None = None

    def play(self) -> None:
        """Play the run.

        Raises:
            Breach: a guarantee is broken.
        """
        for place in self.world.logs:
            self._move(place)
        for _ in range(self._steps):
            self._one(faults=True)
        for _ in range(REST_STEPS):
            if not self._one(faults=False) and self.world.all_committed():
                break
        else:
            raise Breach("P1: the run doesn't come to rest")
        self.world.judge_end(self._calm)
        if findings := self.world.findings(
            [mode.value for mode in self._modes], self._ordering, self._hold, self._calm
        ):
            raise Breach(f"{findings[0]}, says the checker")

    def _now(self) -> Instant:
        return Instant(START_MS + int(self._s * 1000), self._s)

    # ---- steps

    def _one(self, faults: bool) -> bool:
        """Take one step; return whether anything is left to do."""
        self._s += self._random.choice(self._passes if faults else (0.0, 0.01, 0.3))
        alive = {process.number for process in self._alive()}
        for place in self.world.logs:
            if self.world.owner.get(place) not in alive:
                self._move(place)
        if faults and self._random.random() < self._faults:
            self._fault()
            return True
        if faults and self._acts and self._random.random() < self._acts:
            self._move(self._random.choice(list(self.world.logs)), acted_on=True)
            return True
        if self._dead and self._random.random() < 0.1:
            self._arrive()
            return True
        if self.world.produced and self._random.random() < 0.05:
            self.world.produce(self._random.choice(list(self.world.produced)))
            return True
        process, step = self._choose(faults)
        self._take(process, step)
        self._leave(process)
        return bool(
            faults
            or self._dead
            or self.world.produced
            or not process.alive
            or any(each.busy() for each in self._alive())
        )

    def _choose(self, biased: bool) -> tuple[Process, Callable[[], None]]:
        """Choose the next step; in a burst, the one before again."""
        if biased and self._before is not None and self._random.random() < self._stay:
            process, name = self._before
            again = next((step for step in process.steps() if step.__name__ == name), None)
            if process.alive and again is not None:
                return process, again
        process = self._random.choice(self._alive())
        steps = process.steps()
        if biased and self._random.random() < 0.95:
            steps = [step for step in steps if step.__name__ not in self._rare] or steps
        step = self._random.choice(steps)
        self._before = process, step.__name__
        return process, step

    def _take(self, process: Process, step: Callable[[], None]) -> None:
        self._tell(f"{process.number} {step.__name__}")
        self._do(process, step)

    def _do(self, process: Process, step: Callable[[], None]) -> None:
        try:
            step()
        except Killed:
            self._kill(process)

    def _tell(self, what: str) -> None:
        self.story.append(f"{self._s:.3f} {what}")

    def _arrive(self) -> None:
        """What a dead process has sent arrives, or never will."""
        dead = self._random.choice(self._dead)
        queue = self._random.choice([queue for queue in dead.queues if queue] or [dead.queues[0]])
        if not queue or self._random.random() < 0.3:
            self._dead.remove(dead)
            return
        self._tell(f"what a dead process has sent arrives: {queue[0]}")
        dead.arrive(queue, self.world, self._now().wall_ms)

    # ---- faults

    def _kill(self, process: Process) -> None:
        self._dead.append(process.die())
        self._tell(f"{process.number} dies")
        self._processes.remove(process)

    def _fault(self) -> None:
        disorderly = [] if self._calm else ["kill", "lose", "lose"]
        kind = self._random.choice(["move", "move", "move", "pass", "stop", *disorderly])
        place = self._random.choice(list(self.world.logs))
        process = next(p for p in self._alive() if p.number == self.world.owner[place])
        if kind == "kill":
            self._kill(process)
        elif kind == "pass":
            self._s += self._random.choice([2.0, 10.0])
        elif kind == "stop":
            if not process.stopping:
                self._tell(f"{process.number} drains")
                self._do(process, process.drain)
        else:
            self._move(place, orderly=kind == "move")
            if kind == "lose":
                self._linger(process)

    def _linger(self, process: Process) -> None:
        """Let a process continue that has lost a partition, before it polls and hears of it."""
        for _ in range(self._random.choice([0, 0, 4, 10])):
            steps = process.steps()[1:]
            self._s += self._random.choice([0.0, 0.0, 0.3])
            if process.alive and steps:
                self._take(process, self._random.choice(steps))

    def _leave(self, process: Process) -> None:
        """Let a process that stops leave the group, and end."""
        if not process.alive or not process.stopping or not process.may_leave():
            return
        for place in [place for place, owner in self.world.owner.items() if owner == process.number]:
            if process.alive:
                self._move(place)
        if not process.alive:
            return
        self._do(process, process.hear_all)
        if process.alive:
            self._do(process, process.cancel_late_calls)
        if process.alive and process.may_end():
            self._tell(f"{process.number} ends")
            process.alive = False
            self._processes.remove(process)

    def _alive(self) -> list[Process]:
        while sum(not process.stopping for process in self._processes) < 2:
            self._lives += 1
            mode, bound = self._random.choice(self._modes), self._random.choice(self._bounds)
            ordering = self._ordering if mode is RegistrationMode.OFF else Ordering.UNORDERED
            self._tell(f"{self._lives} begins ({mode.value}, {bound})")
            own = (mode, bound, self._slots, self._calm, ordering, self._hold)
            process = Process(
                self._lives, self.world, *own, self._now, self._random, self._cancel_after_s, self._routes
            )
            self._processes.append(process)
        return self._processes

    def _move(self, place: tuple[str, int], orderly: bool = True, acted_on: bool = False) -> None:
        """Give a partition to another process, perhaps after an operator has acted on it."""
        former = next((p for p in self._alive() if p.number == self.world.owner.get(place)), None)
        if former is not None and orderly:
            flush = self._calm or self._random.random() < 0.8
            self._tell(f"{former.number} releases {place} {'after a flush' if flush else ''}")
            self._do(former, partial(former.revoke, [place], flush))
        elif former is not None:
            unheard_s = self._random.choice([0.0, 0.0, 3.0, 12.0])
            self._tell(f"{former.number} loses {place} and hears of it in {unheard_s} s")
            former.lose(place, unheard_s)
        if acted_on:
            self._calm = False
            self._tell(f"an operator: {self._operators.act(place)}")
        successor = self._random.choice([p for p in self._alive() if p is not former and not p.stopping])
        self.world.give(place, successor.number)
        self._tell(f"{successor.number} gets {place}")
        successor.assign(place)


STEPS = ("poll_and_tick", "tick", "append", "append_letter", "report", "commit", "answer", "end_call", "empty")
