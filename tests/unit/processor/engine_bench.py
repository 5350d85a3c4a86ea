"""Plays the engine by short texts: an event in, the effects out.

Records are named by their offset, those of the second partition with a `b` in front. `registered 0 1` is an event,
`start 0; commit 2` are effects, and a word with a question mark asks the engine.

A story is a line with its name, and lines of steps as `EngineBench.play` reads them. `poll 0 > register 0` is an event
and its effects; a step without `>` has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from processor.flow.concurrency import FixedLimit
from processor.flow.flow import Flow
from processor.flow.prefetch import Prefetch
from processor.flow.route_limits import RouteLimits
from processor.flow.slots import Slots
from processor.protocol import effects, events, results
from processor.protocol.engine import Engine
from processor.protocol.open_records import OpenRecords
from processor.protocol.record import Entry
from processor.protocol.registering import Rules
from processor.protocol.results import RetryDelays
from processor.wiring import scheduler_of
from wait_registry.records.topics import TopicPartition
from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings.processor import Ordering

A, B = ("input", 0), ("input", 1)
BEGAN_MS = 1_000_000
TTL_S, START_NEEDS_S, REGISTER_AFTER_S, COMMIT_INTERVAL_S = 60.0, 20.0, 0.5, 0.5
WORDS: dict[type, str] = {
    effects.Register: "register",
    effects.Start: "start",
    effects.WriteTombstones: "tombstone",
    effects.Publish: "dead letter",
    effects.Rewind: "rewind",
    effects.Cancel: "cancel",
    effects.Commit: "commit",
    effects.Release: "release",
    effects.Pause: "pause",
    effects.Resume: "resume",
}
ERROR = ValueError("failed")
RESULTS: dict[str, results.Result | None] = {
    "done": results.Done(),
    "discarded": results.Discarded("old"),
    "failed": results.Failed(ERROR),
    "retry": results.Failed(ERROR, retriable=True),
    "cancelled": None,
}

ASKED: dict[str, Callable[[EngineBench], object]] = {
    "open?": lambda bench: len(bench.engine.records),
    "in_flight?": lambda bench: bench.engine.records.in_flight(),
    "unfinished?": lambda bench: bench.engine.unfinished([A]),
    "unsettled?": lambda bench: bench.engine.records.unsettled(),
    "room?": lambda bench: bench.flow.room(),
    "worth_a_poll?": lambda bench: bench.flow.is_worth_a_poll(bench.flow.room()),
    "paused?": lambda bench: bench.flow.paused,
    "waiting?": lambda bench: bench.flow.slots.waiting,
}


class EngineBench:
    """An engine to which partition A was assigned at second 0.

    Args:
        mode: when it registers.
        end: the end of the log at the assignment; with 0, no record belongs to the warm-up.
        recorded_mode, recorded_bound: what the last commit says of the previous owner.
        start: the committed offset; None if there is none.
        slots, bound, prefetch: calls, uncommitted records and open records at most.
        delays: of the retry topics, s.
        ordering: which records wait for earlier ones.
        hold_oversized: whether what can't be registered is called.
        cancel_after: age of calls that are cancelled if they hold nearly all slots, s.
        route_limits: the limits of routes; the route of a record is the remainder of its offset by two.
        delay, retries: of the first partition: how long its records wait, s, and whether it is a retry topic's.
    """

    def __init__(
        self,
        mode: str = "eager",
        end: int | None = 0,
        recorded_mode: str | None = "eager",
        recorded_bound: int | None = 200,
        start: int | None = 0,
        slots: int = 10,
        bound: int = 200,
        prefetch: Prefetch | int = 1000,
        delays: tuple[int, ...] = (),
        delay: float = 0,
        retries: bool = False,
        cancel_after: float | None = None,
        ordering: str = "unordered",
        hold_oversized: bool = False,
        route_limits: Mapping[int, int] | None = None,
    ) -> None:
        times = (COMMIT_INTERVAL_S, TTL_S, START_NEEDS_S)
        rules = Rules(RegistrationMode(mode), REGISTER_AFTER_S, bound, *times, hold_oversized)
        if isinstance(prefetch, int):
            prefetch = Prefetch(FixedLimit(slots), prefetch, 1 << 30)
        routes = None if route_limits is None else RouteLimits(lambda entry: entry.offset % 2, route_limits)
        records = OpenRecords()
        worker_slots = Slots(scheduler_of(Ordering(ordering)), FixedLimit(slots), routes, cancel_after)
        self.flow: Flow = Flow(rules, records, worker_slots, prefetch)
        self.engine: Engine = Engine(rules, records, self.flow, RetryDelays(delays))
        self.now_s = 0.0
        self.entries: dict[str, Entry] = {}
        self._assigned = events.Assigned(A, start, recorded_bound, recorded_mode, end, delay, retries)
        self.step(self._assigned)
        self.step(events.Tick())
        self._events: dict[str, Callable[[list[str]], events.Event]] = {
            "poll": self._polled,
            "malformed": lambda names: self._polled(names, malformed=True),
            "ends": lambda names: events.EndsSeen(dict(map(_split, names))),
            "read_to": lambda names: events.ReadTo(*_split(names[0])),
            "registered": lambda names: events.Registered(self._of(names)),
            "refused": lambda names: events.RegistrationRefused(self.entries[names[0]]),
            "too_large": lambda names: events.RetryRefused(self.entries[names[0]], ERROR),
            "letter_refused": lambda names: events.DeadLetterRefused(self.entries[names[0]]),
            "foreign": lambda names: self._polled(names, foreign=True),
            "published": lambda names: events.Published(self._of(names)),
            "confirmed": lambda names: events.CommitAnswered(dict(map(_split, names))),
            "unconfirmed": lambda names: events.CommitAnswered({}, [A]),
            "assigned": lambda names: (
                self._assigned._replace(place=B, delay_s=0, retries=False) if "b" in names else self._assigned
            ),
            "revoking": lambda names: events.Revoking([A]),
            "revoke": lambda names: events.Revoked([A]),
            "lost": lambda names: events.Lost([A]),
            "crowded": lambda names: events.PollingWithoutRoom(),
            "blocked": lambda names: events.SlotsBlocked(int(names[0])),
            "drain": lambda names: events.Draining(),
            "tick": lambda names: events.Tick(),
        }

    def step(self, event: events.Event) -> list[effects.Effect]:
        """Pass an event on and note the records that its effects name."""
        effects = self.engine.step(event, events.Instant(BEGAN_MS + round(self.now_s * 1000), self.now_s))
        for effect in effects:
            for entry in getattr(effect, "entries", ()):
                self.entries[_name(entry.partition.place, entry.offset)] = entry
        return effects

    def play(self, text: str) -> str:
        """Do what a text says and return the effects as a text.

        `after 2` lets two seconds pass, with a tick at their end; `later 2` without one.
        """
        word, *names = text.split()
        if word.endswith("?"):
            return str(ASKED[word](self))
        if word in ("after", "later"):
            self.now_s += float(names[0])
            return "" if word == "later" else self.play("tick")
        if word in RESULTS:
            event: events.Event = events.CallsEnded([(entry, RESULTS[word]) for entry in self._of(names)])
        else:
            event = self._events[word](names)
        return "; ".join(map(_text, self.step(event)))

    def _polled(self, names: list[str], malformed: bool = False, foreign: bool = False) -> events.Polled:
        """Poll records; one of a delayed partition has the second of its offset as its timestamp."""
        places, offsets = zip(*map(_split, names), strict=True)
        errors = {offset: ValueError("malformed") for offset in offsets if malformed}
        others = offsets if foreign else ()
        timestamps_ms = [BEGAN_MS + 1000 * offset for offset in offsets]
        return events.Polled(places[0], offsets, offsets, [10] * len(offsets), errors, others, timestamps_ms)

    def _of(self, names: Iterable[str]) -> list[Entry]:
        return [self.entries[name] for name in names]


def _split(name: str) -> tuple[TopicPartition, int]:
    return (B, int(name[1:])) if name.startswith("b") else (A, int(name))


def _name(place: TopicPartition, offset: object = "") -> str:
    return f"{'b' if place == B else ''}{offset}"


def _text(effect: effects.Effect) -> str:
    names: list[str] = []
    if isinstance(effect, effects.Pause | effects.Resume):
        names = ["a" if place == A else "b" for place in effect.places]
    elif isinstance(effect, effects.Rewind):
        names = [_name(effect.place, effect.offset)]
    elif isinstance(effect, effects.Commit | effects.Release):
        offsets: Mapping[TopicPartition, int] = effect.offsets
        names = [_name(place, offset) for place, offset in offsets.items()]
    else:
        names = [_name(entry.partition.place, entry.offset) for entry in effect.entries]
    retry = isinstance(effect, effects.Publish) and isinstance(effect.entries[0].outcome, results.Retry)
    return " ".join(["retry" if retry else WORDS[type(effect)], *names])


# Beginnings of stories.
BEGIN = {
    "SLOW": "poll 0 > start 0 | after 0.6 > commit 0 | confirmed 0 | after 0.1 > register 0",
    "FOUR": "poll 0 1 2 3 > register 0 1 2 3 | registered 0 1 2 3 > start 0",
    "HELD": "poll 0 1 2 > register 0 1 2 | registered 0 1 2 > commit 3",
}


def stories(text: str) -> pytest.MarkDecorator:
    """Make a case of each story: its lines that end with a `|` continue."""
    for name, steps in BEGIN.items():
        text = text.replace(name, steps)
    lines = [line.strip() for line in text.replace("|\n", "|").strip().splitlines()]
    cases = zip(lines[::2], lines[1::2], strict=True)
    return pytest.mark.parametrize("story", [pytest.param(steps, id=name) for name, steps in cases])


def play(story: str, **given: Any) -> None:
    bench = EngineBench(**given)
    for number, step in enumerate(story.split("|")):
        event, _, effects = (part.strip() for part in step.partition(">"))
        assert bench.play(event) == effects, f"step {number}: {event}"
