"""A simulated process: the real engine, and a loop without clients. Each public method is a step of the scheduler."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Mapping
from random import Random

from processor.flow.concurrency import FixedLimit
from processor.flow.flow import Flow
from processor.flow.prefetch import Prefetch
from processor.flow.route_limits import RouteLimits
from processor.flow.slots import Slots
from processor.intake.start_decision import Start, own_start
from processor.protocol.effects import (
    Cancel,
    Commit,
    Effect,
    Pause,
    Publish,
    Register,
    Release,
    Resume,
    Rewind,
    WriteTombstones,
)
from processor.protocol.effects import Start as Calls
from processor.protocol.engine import Engine
from processor.protocol.events import (
    Assigned,
    CallsEnded,
    DeadLetterRefused,
    Draining,
    EndsSeen,
    Event,
    Instant,
    Lost,
    Polled,
    PollingWithoutRoom,
    ReadTo,
    Revoked,
    Revoking,
    Tick,
)
from processor.protocol.open_records import OpenRecords
from processor.protocol.record import Entry, State
from processor.protocol.registering import Rules
from processor.protocol.results import Done, Failed, Result, RetryDelays
from processor.wiring import scheduler_of
from tests.simulation.messages import Dead, Killed, News, Taken, key_of, record_of
from tests.simulation.operators import TOPIC_ID, WAIT_TOPIC, metadata_of
from tests.simulation.requests import Requests
from tests.simulation.world import RETRIES, RETRY_DELAY_S, Breach, Committed, Nature, RecordId, World
from wait_registry.kafka.commit_metadata import CommitMetadata
from wait_registry.records.topics import TopicPartition
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings.processor import Ordering

REGISTER_AFTER_S = 0.5
TTL_S = 60.0
START_NEEDS_S = 20.0
# In deferred, how long after its loss a process may still register records of a partition: OWNERSHIP_S.
BELIEF_S = 5.0
DRAIN_S = 20.0


class Process:
    """One life of one member of the group.

    Args:
        number: its name in the group; a later life has another one.
        mode: when it registers.
        bound: its `uncommitted_max`.
        slots: how many calls may run.
        calm: whether the answers of its last commits arrive.
        ordering: which records are handled in order.
        hold: whether a record that is too large to register is called all the same.
        now: reads the clock.
        cancel_after_s: age of calls that are cancelled if they hold nearly all slots, s.
        routes: how many calls of records with an even offset (route 0) or an odd one (1) may run, if limited.
    """

    def __init__(
        self,
        number: int,
        world: World,
        mode: RegistrationMode,
        bound: int,
        slots: int,
        calm: bool,
        ordering: Ordering,
        hold: bool,
        now: Callable[[], Instant],
        random: Random,
        cancel_after_s: float | None = None,
        routes: Mapping[int, int] | None = None,
    ) -> None:
        self.number = number
        self.mode = mode
        self._world = world
        self._bound = bound
        self._slots = slots
        self._calm = calm
        self._ordering = ordering
        self._now = now
        self._random = random
        rules = Rules(mode, REGISTER_AFTER_S, bound, 0.5, TTL_S, START_NEEDS_S, hold)
        limit, self._routes, records = FixedLimit(slots), routes or {}, OpenRecords()
        route_limits = RouteLimits(_route_of, routes) if routes else None
        worker_slots = Slots(scheduler_of(ordering), limit, route_limits, cancel_after_s)
        flow = Flow(rules, records, worker_slots, Prefetch(limit, 200, 1 << 20))
        self.engine = Engine(rules, records, flow, RetryDelays((RETRY_DELAY_S,)))
        self.position: dict[TopicPartition, int] = {}
        self._polled: dict[TopicPartition, list[int]] = {}
        self._warm: dict[TopicPartition, float] = {}
        self._ever: set[RecordId] = set()
        self._paused: set[TopicPartition] = set()
        self.requests = Requests(number, world, random)
        self._generations: dict[TopicPartition, int] = {}
        self._news: deque[News] = deque()
        self._ends: dict[TopicPartition, int] = {}
        # Since when it is known that the retry topic has a record.
        self._seen_ms: dict[int, int] = {}
        self._given_up: set[TopicPartition] = set()
        self._known: set[Entry] = set()
        self.running: list[Entry] = []
        # Of these, the calls that haven't ended yet although they are cancelled.
        self._cancelled: set[Entry] = set()
        self.alive = True
        self.stopping = False
        # Not behind the limit of an orderly stop.
        self._starts = True
        self._drains_s = 0.0

    # ---- steps

    def steps(self) -> list[Callable[[], None]]:
        """Return the steps that can be taken now."""
        requests = self.requests
        steps: list[Callable[[], None]] = [self.tick if self.stopping else self.poll_and_tick]
        for queue, step in (
            (requests.waits, requests.append),
            (requests.letters, self.append_letter),
            (requests.reports, self.report),
            (requests.commits, requests.commit),
            (requests.answers, self.answer),
            (self.running, self.end_call),
            (self._emptied(), self.empty),
        ):
            if queue:
                steps.append(step)
        return steps

    def _emptied(self) -> range:
        """Return which offsets of the retry topic `EmptiedTopics` deletes now."""
        partition = self.engine.partitions.get(RETRIES)
        if partition is None or self.requests.kept_below.get(RETRIES) is not None:
            return range(0)
        return range(self._world.first.get(RETRIES, 0), max(0, partition.confirmed))

    def empty(self) -> None:
        """What is committed of the retry topic is deleted."""
        self._world.delete(RETRIES, self._emptied().stop)

    def busy(self) -> bool:
        """Return whether anything is left to do."""
        unread = any(self._world.end(place) > self.position[place] for place in self.engine.partitions)
        return bool(unread or self._news or self.engine.records or len(self.steps()) > 1)

    def poll_and_tick(self) -> None:
        """Poll: news first, then records; then let time pass in the engine."""
        self._hear_news()
        if RETRIES in self.engine.partitions:
            self._step(EndsSeen({RETRIES: self._world.end(RETRIES)}))
            now_ms = self._now().wall_ms
            self._seen_ms = {at: self._seen_ms.get(at, now_ms) for at, _ in self._world.log(RETRIES)}
        room = self.engine.flow.room()
        if room == 0:
            self._step(PollingWithoutRoom())
            room = 1
        for place in list(self.engine.partitions):
            if place not in self._paused and room > 0:
                room -= self._poll(place, self._random.randint(0, room))
        self._step(Tick())

    def tick(self) -> None:
        """Let time pass as a drain does, which polls for a while."""
        polls = self._random.random() < 0.5
        if polls:
            self._hear_news()
        self._step(Tick(polls))

    def _hear_news(self) -> None:
        while self._news and self._news[0].arrives_s <= self._now().s:
            self._hear(self._news.popleft())

    def _poll(self, place: TopicPartition, most: int) -> int:
        unread = [(at, nature) for at, nature in self._world.log(place) if at >= self.position[place]]
        if not unread and (end := self._world.end(place)) > self.position[place]:
            self.position[place] = end
            self._step(ReadTo(place, end))
        log = unread[:most]
        if not log:
            return 0
        self._world.story.append(f"    {self.number} polls {place} {[at for at, _ in log]}")
        self.position[place] = log[-1][0] + 1
        offsets = [at for at, _ in log]
        numbered = enumerate(offsets, len(self._polled[place]))
        beyond = {(*place, at) for number, at in numbered if number >= self._warm[place]}
        self._polled[place] += offsets
        self._ever.update((*place, at) for at in offsets)
        if self._is_current(place):
            # What was registered after a loss without notice may be outside of the warm-up.
            there = {(*place, at) for at in offsets if at < self._ends[place]}
            self._world.may_be_left -= there - (beyond & self._world.registered_late)
        malformed = {at: ValueError("malformed") for at, nature in log if nature is Nature.MALFORMED}
        generation = self._generations[place]
        times = [self._world.retried.get((*place, at), ("", 0))[1] for at in offsets]
        ids = (wait_id("c", (*place, at), "g", time_ms) for at, time_ms in zip(offsets, times, strict=True))
        records = [Taken((*place, at), name, generation) for at, name in zip(offsets, ids, strict=True)]
        shown = [
            time_ms + (self._world.ahead_ms if at % 3 == 0 else 0) for at, time_ms in zip(offsets, times, strict=True)
        ]
        self._step(Polled(place, offsets, records, [10] * len(log), malformed, (), shown))
        self._judge_wait(place)
        return len(log)

    def _judge_wait(self, place: TopicPartition) -> None:
        partition, first = self.engine.partitions.get(place), self.position[place]
        due_times = None if partition is None else partition.due_times
        most_ms = self._seen_ms.get(first, math.inf) + RETRY_DELAY_S * 1002
        if due_times is not None and self._now().wall_ms < due_times.next_ms > most_ms:
            raise Breach(f"D1: {(*place, first)} waits for longer than the delay after the log was seen to have it")

    def _is_current(self, place: TopicPartition) -> bool:
        return self._generations[place] == self._world.generation[place]

    def append_letter(self) -> None:
        """The broker takes a dead letter or a retry record."""
        self.requests.append_letter(self._now().wall_ms)

    def report(self) -> None:
        """The client passes delivery reports on."""
        report = self.requests.report()
        self._step(report)
        if isinstance(report, DeadLetterRefused) and report.entry.state is State.DROPPED:
            self._world.may_expire.add(record_of(report.entry))
            self._world.may_be_left.add(record_of(report.entry))

    def answer(self) -> None:
        """The client passes the answer of a commit on."""
        self._step(self.requests.answers.popleft())

    def end_call(self) -> None:
        """A call ends; those of slow records last longer."""
        fast = [entry for entry in self.running if not self._world.is_slow(record_of(entry))]
        if not fast or self._random.random() < 0.1:
            fast = self.running
        entry = self._random.choice(fast)
        self.running.remove(entry)
        if entry in self._cancelled:
            self._cancelled.remove(entry)
            # A handler may answer in spite of its cancellation.
            answers = entry.state is not State.DROPPED and self._random.random() < 0.3
            self._step(CallsEnded([(entry, self._called(entry) if answers else None)]))
        else:
            self._step(CallsEnded([(entry, self._called(entry))]))

    def _called(self, entry: Entry) -> Result:
        nature = self._world.nature(record_of(entry))
        done = nature not in (Nature.FAILING, Nature.FLAKY)
        self._world.end_call(self.number, record_of(entry), done)
        return Done() if done else Failed(ValueError("failed"), retriable=nature is Nature.FLAKY)

    # ---- the group

    def assign(self, place: TopicPartition) -> None:
        """The group gives it a partition; it learns that by its next poll."""
        self._news.append(News(self._after_s(self._now().s), place, None, self._world.generation[place]))

    def _after_s(self, moment_s: float) -> float:
        return max(moment_s, self._news[-1].arrives_s) if self._news else moment_s

    def lose(self, place: TopicPartition, unheard_s: float) -> None:
        """The group has taken a partition away; it learns that by a poll after some time."""
        lost_s = self._now().s
        self._news.append(News(self._after_s(lost_s + unheard_s), place, lost_s, 0))

    def revoke(self, places: list[TopicPartition], flush: bool) -> None:
        """The group takes partitions away in an orderly way: flush, let calls end, commit, give up."""
        self.hear_all()
        self._step(Revoking(places))
        self._flush(places if flush else ())
        while flush and self.engine.unfinished(places) and self._random.random() < 0.7:
            self._random.choice([step for step in self.steps() if step != self.poll_and_tick] or [self.tick])()
        # Meanwhile a slow call may have been registered. If not all of them are flushed in time, something goes wrong.
        self._flush(places if self._calm else ())
        self._step(Revoked(places))
        self._given_up.update(places)
        for entry in self.running:
            place, offset = entry.partition.place, entry.offset
            continues = entry.state is not State.RUNNING_REGISTERED  # else its tombstone settles what it has registered
            continues = continues and entry not in self._cancelled
            if self._calm and continues and place in places and offset >= self._world.start(place):
                raise Breach(f"P1: a call of {record_of(entry)} continues, though the next owner handles it")

    def _flush(self, places: Collection[TopicPartition]) -> None:
        while self.engine.records.in_flight(places):
            if not self.requests.waits and not self.requests.reports:
                raise Breach("P1: a flush never ends, since a wait record has been answered and is still in flight")
            self.requests.append() if self.requests.waits else self.report()

    def hear_all(self) -> None:
        """Hear of everything, as a member that takes part in a rebalance does."""
        while self._news:
            self._hear(self._news.popleft())

    def _hear(self, news: News) -> None:
        place = news.place
        if news.lost_s is not None:
            self._given_up.add(place)
            self._step(Lost([place]))
            return
        if self._world.generation[place] != news.generation:
            return  # lost before it was heard of
        self._generations[place] = news.generation
        committed = self._world.committed.get(place)
        self.position[place] = self._world.start(place)
        self.requests.kept_below.pop(place, None)
        self._polled[place] = []
        self._paused.discard(place)
        self._given_up.discard(place)
        self._ends[place] = self._world.end(place)
        end = None if self._random.random() < self._world.unknown_ends else self._ends[place]
        if place == RETRIES:
            self._seen_ms = {}
        delayed = (RETRY_DELAY_S, True) if place == RETRIES else (0, False)
        if committed is None:
            self._warm[place] = self._warm_up(CommitMetadata(WAIT_TOPIC))
            self._step(Assigned(place, None, None, None, end, *delayed))
            return
        start = Start(*place, committed.offset, metadata_of(committed), end, CommitMetadata(WAIT_TOPIC, TOPIC_ID))
        if place == RETRIES:
            start, _ = own_start(start, self._world.first.get(place, 0))
            self.position[place] = self._world.first.get(place, 0) if start.offset is None else start.offset
            self.requests.kept_below[place] = start.commits.kept_below if start.commits else None
        said = start.recorded or CommitMetadata(WAIT_TOPIC)
        if start.offset is not None and start.corrected():
            own = Committed(start.offset, said.uncommitted_max, said.registration)
            self._world.commit(self._generations[place], place, own)
        self._warm[place] = self._warm_up(said)
        self._step(Assigned(place, start.offset, said.uncommitted_max, said.registration, end, *delayed))

    def _warm_up(self, said: CommitMetadata) -> float:
        """Return how many records of a new assignment belong to the warm-up at most."""
        if self.mode is RegistrationMode.OFF and said.registration in (None, RegistrationMode.OFF):
            return 0
        return math.inf if said.uncommitted_max is None else max(self._bound, said.uncommitted_max)

    def drain(self) -> None:
        """SIGTERM."""
        self.stopping = True
        self._drains_s = self._now().s
        self._step(Draining())

    def may_leave(self) -> bool:
        """Return whether an orderly stop may leave the group now."""
        drained = not self.engine.records.unsettled() and not self.engine.records.in_flight()
        return drained or self._is_late(DRAIN_S / 2)

    def cancel_late_calls(self) -> None:
        """Cancel the calls that exceed the limit of an orderly stop."""
        if self._is_late(DRAIN_S) and self.running:
            running, self.running = self.running, []
            self._cancelled.clear()
            self._starts = False
            self._leave()
            self._step(CallsEnded([(entry, None) for entry in running]))

    def may_end(self) -> bool:
        """Return whether an orderly stop has come to its end."""
        return (not self.engine.records or self._is_late(DRAIN_S)) and len(self.steps()) == 1

    def _is_late(self, limit_s: float) -> bool:
        return not self._calm and self._now().s - self._drains_s > limit_s

    # ---- effects

    def _step(self, event: Event) -> None:
        held = [entry for entry in self._known if entry.state in (State.HELD, State.RENEWING)]
        # Kept by their registrations, which expire (docs/guarantees.md, "Dead letters that no topic takes").
        refused = [entry for entry in self.engine.refused if self._world.registrations(record_of(entry))]
        for effect in self.engine.step(event, self._now()):
            self._execute(effect)
        # No commit is known to cover them, and the next owner may not get them.
        abandoned = [record_of(entry) for entry in (*held, *refused) if entry.state is State.DROPPED]
        self._world.may_expire.update(abandoned)
        self._world.may_be_left.update(abandoned)
        if len(self.running) > self._slots:
            raise Breach(f"P7: {len(self.running)} calls run")
        for route, most in self._routes.items():
            if (count := sum(_route_of(entry) == route for entry in self.running)) > most:
                raise Breach(f"P7: {count} calls of route {route} run")
        for place in self.engine.partitions:
            polled = self._polled[place]
            uncommitted = len(polled) - bisect_left(polled, self._world.start(place))
            # An operator may have moved its offset back, before this process knows that it has lost the partition.
            if uncommitted > self._bound and (self._is_current(place) or place not in self._world.moved):
                raise Breach(f"P7: {uncommitted} records of {place} are uncommitted, the bound is {self._bound}")

    def _execute(self, effect: Effect) -> None:
        if isinstance(effect, Register):
            self._known = {entry for entry in self._known if entry.state not in (State.SETTLED, State.DROPPED)} | set(
                effect.entries
            )
            self._register(effect)
        elif isinstance(effect, WriteTombstones):
            self.requests.write_tombstones(effect.entries)
        elif isinstance(effect, Publish):
            if running := [entry for entry in effect.entries if entry in self.running]:
                raise Breach(f"P7: {record_of(running[0])} goes to another topic while its call runs")
            self.requests.publish(effect.entries)
        elif isinstance(effect, Commit):
            self.requests.commits.append((effect, dict(self._generations)))
        elif isinstance(effect, Calls):
            self._start(effect)
        elif isinstance(effect, Cancel):
            cancelled = [entry for entry in effect.entries if entry in self.running]
            blocked = any(entry.state is not State.DROPPED for entry in cancelled)
            if blocked and any(entry.state is not State.DROPPED for entry in self._cancelled):
                raise Breach("P7: a blocked call is cancelled while another continues after its cancellation")
            if (blocked or self._ordering is not Ordering.UNORDERED) and self._random.random() < 0.5:
                self._cancelled.update(cancelled)
                return
            self.running = [entry for entry in self.running if entry not in cancelled]
            self._step(CallsEnded([(entry, None) for entry in cancelled]))
        elif isinstance(effect, Pause):
            self._paused.update(effect.places)
        elif isinstance(effect, Resume):
            self._paused.difference_update(effect.places)
        elif isinstance(effect, Rewind):
            self.position[effect.place] = effect.offset
            self._polled[effect.place] = [at for at in self._polled[effect.place] if at < effect.offset]
        elif isinstance(effect, Release):
            self._step(self.requests.release(effect, self._generations, 0.0 if self._calm else 0.2))

    def _register(self, effect: Register) -> None:
        for entry in effect.entries:
            if entry.state is not State.RENEWING and not self._may_be_its_own(entry):
                raise Breach(f"P1: {record_of(entry)} is registered by a process that could know it isn't its own")
        self.requests.register(effect)

    def _may_be_its_own(self, entry: Entry) -> bool:
        """Return whether the process can't know that the record is another's by now."""
        place = entry.partition.place
        if place in self._given_up:
            return False
        slow = self.mode is RegistrationMode.DEFERRED and not entry.warm_up
        for news in self._news:
            if news.place == place and news.lost_s is not None:
                now_s = self._now().s
                return news.arrives_s > now_s and not (slow and now_s - news.lost_s > BELIEF_S)
        return True

    def _start(self, effect: Calls) -> None:
        for entry in effect.entries if self._starts else ():
            record = record_of(entry)
            place = entry.partition.place
            self._world.story.append(f"    {self.number} calls {record}")
            if self.mode is RegistrationMode.OFF and self.engine.partitions.get(place) is not entry.partition:
                raise Breach(f"O1: {record} is called, and the partition was given up")
            self._judge_order(entry)
            self._world.begin_call(self.number, record, self._now().wall_ms)
            if self._is_current(place):  # else another owner may call it too
                self._world.calls[record] = self._world.calls.get(record, 0) + 1
            if entry.lifetime is not None and entry.lifetime.start_by_s < self._now().s:
                raise Breach(f"P3: the call of {record} starts with too little time until its registration expires")
            if self._world.nature(record) is Nature.DEADLY:
                raise Killed
            self.running.append(entry)

    def _judge_order(self, entry: Entry) -> None:
        place, record = entry.partition.place, record_of(entry)
        lane = self._lane(record)
        if lane is None or place == RETRIES:
            return
        earlier = [(*place, at) for at in self._polled[place] if at < entry.offset]
        if before := [each for each in earlier if self._lane(each) == lane and not self._world.settled(each)]:
            raise Breach(f"O1: {record} is called before {before[0]} is settled")
        if running := [each for each in map(record_of, self.running) if self._lane(each) == lane]:
            raise Breach(f"O1: {record} is called while the call of {running[0]} runs")

    def _lane(self, record: RecordId) -> object:
        if self._ordering is Ordering.UNORDERED:
            return None
        key = key_of(record) if self._ordering is Ordering.KEY else b""
        return None if key is None else (record[:2], key)

    def _leave(self) -> None:
        self._world.may_expire.update(self._ever)
        self._world.may_be_left.update(record_of(entry) for entry in self.engine.records)
        self.requests.leave()

    def die(self) -> Dead:
        """Die; return what may still arrive of what was sent."""
        self.alive = False
        self._leave()
        return self.requests.die()


def _route_of(entry: Entry) -> int:
    return entry.offset % 2
