"""A service with a capacity, called by the real worker slots in simulated time.

Beyond the capacity calls wait in a queue, or are refused at once. How long a call is served is lognormal: single calls
are slow for reasons of their own. A call makes up to three attempts, as in a processor.
"""

from __future__ import annotations

import heapq
import math
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final, NamedTuple

from processor.flow.concurrency import ConcurrencyLimit
from processor.flow.scheduler import Unordered
from processor.flow.slots import Slots
from processor.protocol.partition import Partition
from processor.protocol.record import Entry, Step
from processor.protocol.results import Done, Failed

ATTEMPTS: Final = 3
TIMEOUT_S: Final = 30.0
REFUSED_AFTER_S: Final = 0.005
SAMPLE_S: Final = 0.25
WAITING: Final = 600
FAILED: Final = Failed(TimeoutError(), retriable=True)
DONE: Final = Done()


@dataclass(frozen=True)
class Service:
    """How the service behaves.

    Args:
        median_s: time to serve a call, s.
        sigma: of its logarithm.
        refuses: whether calls beyond the capacity are refused; else they wait.
        hangs: share of the attempts that never get an answer.
        fails: share of the attempts that fail whatever the load is.
    """

    median_s: float = 0.1
    sigma: float = 1.0
    refuses: bool = False
    hangs: float = 0.0
    fails: float = 0.0

    @property
    def mean_s(self) -> float:
        """Mean time to serve a call, s."""
        return self.median_s * math.exp(self.sigma**2 / 2)

    @property
    def idle_p95_s(self) -> float:
        """The 95th percentile of the time to serve a call, s."""
        return self.median_s * math.exp(1.645 * self.sigma)


class Phase(NamedTuple):
    """A time with one capacity.

    Args:
        seconds: how long it lasts.
        capacity: calls that are served at once; 0 if every attempt fails at once.
        slower: factor of the time to serve a call.
    """

    seconds: float
    capacity: int
    slower: float = 1.0


class Sample(NamedTuple):
    """The limit and the calls in flight at one moment."""

    at_s: float
    limit: int
    running: int


class Ended(NamedTuple):
    """A call that has ended."""

    at_s: float
    seconds: float
    failed: bool


@dataclass(eq=False)
class Attempt:
    """One attempt at a record: ``left`` once its caller has gone."""

    entry: Entry
    number: int
    left: bool = False


@dataclass
class Trial:
    """Worker slots that call a service; records always wait.

    Args:
        limit: of the calls.
        phases: of the service, one after the other.
        service: how it behaves.
        seed: of all that is random.
    """

    limit: ConcurrencyLimit
    phases: list[Phase]
    service: Service
    seed: int = 0
    samples: list[Sample] = field(default_factory=list)
    calls: list[Ended] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self._slots = Slots(Unordered(), self.limit)
        self._partition = Partition(("input", 0), 0)
        self._partition.add(array("q", [0]))
        self._now_s = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._phase = self.phases[0]
        self._served = 0
        self._queue: deque[Attempt] = deque()
        self._started: dict[Entry, float] = {}

    def run(self) -> Trial:
        """Let all phases pass."""
        end_s = 0.0
        for phase in self.phases:
            self._in(end_s, partial(self._begin, phase))
            end_s += phase.seconds
        self._in(0.0, self._sample)
        self._in(0.0, self._fill)
        while self._events[0][0] < end_s:
            self._now_s, _, event = heapq.heappop(self._events)
            event()
        return self

    def _in(self, seconds: float, event: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (self._now_s + seconds, self._number, event))

    def _begin(self, phase: Phase) -> None:
        self._phase = phase
        self._serve_next()

    def _sample(self) -> None:
        self.samples.append(Sample(self._now_s, self.limit.current, self._slots.running))
        self._in(SAMPLE_S, self._sample)

    # ---- the caller

    def _fill(self) -> None:
        missing = WAITING - self._slots.waiting
        entries = [Entry(self._partition, 0, 0, None, 1, 0.0, False) for _ in range(missing)]
        for entry in entries:
            entry.take(Step.RELEASE)
        self._slots.add(entries)
        started, _ = self._slots.start(self._now_s)
        for entry in started:
            self._started[entry] = self._now_s
            self._arrive(Attempt(entry, 1))
        if self._slots.free > 0 and self._now_s < self._slots.next_start_s < math.inf:
            self._in(self._slots.next_start_s - self._now_s, self._fill)

    def _fail(self, attempt: Attempt) -> None:
        if attempt.left:
            return
        attempt.left = True
        if attempt.number == ATTEMPTS:
            self._end(attempt.entry, FAILED)
            return
        again = Attempt(attempt.entry, attempt.number + 1)
        self._in(self._random.random() * 0.2 * 2 ** (attempt.number - 1), lambda: self._arrive(again))

    def _end(self, entry: Entry, result: Done | Failed) -> None:
        failed = result is FAILED
        self.calls.append(Ended(self._now_s, self._now_s - self._started.pop(entry), failed))
        self._slots.ended([(entry, result)], 1, int(failed), self._now_s)
        self._fill()

    # ---- the service

    def _arrive(self, attempt: Attempt) -> None:
        phase, service = self._phase, self.service
        if not phase.capacity or self._random.random() < service.fails:
            self._in(REFUSED_AFTER_S, lambda: self._fail(attempt))
        elif self._random.random() < service.hangs:
            self._in(TIMEOUT_S, lambda: self._fail(attempt))
        elif self._served < phase.capacity:
            self._serve(attempt)
        elif service.refuses:
            self._in(REFUSED_AFTER_S, lambda: self._fail(attempt))
        else:
            self._queue.append(attempt)
            self._in(TIMEOUT_S, lambda: self._fail(attempt))

    def _serve(self, attempt: Attempt) -> None:
        self._served += 1
        median_s = self.service.median_s * self._phase.slower
        self._in(self._random.lognormvariate(math.log(median_s), self.service.sigma), lambda: self._answer(attempt))

    def _answer(self, attempt: Attempt) -> None:
        self._served -= 1
        self._serve_next()
        if not attempt.left:
            attempt.left = True
            self._end(attempt.entry, DONE)

    def _serve_next(self) -> None:
        while self._queue and self._served < self._phase.capacity:
            attempt = self._queue.popleft()
            if not attempt.left:
                self._serve(attempt)
