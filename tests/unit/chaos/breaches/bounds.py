"""Bounds passed (P7)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import EXPORTS, WaitEntry
from tests.chaos.history.history import FaultDone, History, RssSample
from tests.unit.chaos.breaches.planting import Choose, breach, swapped, taken_at_once, together
from tests.unit.chaos.script import LIMITS, Script


@breach(Kind.BOUND, "calls in flight")
def _(script: Script, choose: Choose) -> History:
    together(script, LIMITS.max_in_flight * LIMITS.processes + 1, instances=2)
    return script.history()


@breach(Kind.BOUND, "registrations unfinished by one instance")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    entries = [taken_at_once(script, "processor-1/1") for _ in range(LIMITS.look_ahead + 1)]
    for entry in entries:
        script.call(entry, last_ms=5)
        script.tombstone(entry)
    return script.history()


@breach(Kind.BOUND, "registrations unfinished by one instance, each registered again by it")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    places = []
    for _ in range(LIMITS.look_ahead + 1):
        entry = taken_at_once(script, "processor-1/1")
        assert entry.registration is not None
        places.append(entry.registration.original)
    entries = [script.register(place) for place in places]
    for entry in entries:
        script.call(entry, last_ms=5)
        script.tombstone(entry)
    return script.history()


@breach(Kind.BOUND, "more taken by one instance, whose hands were full of bytes")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    entries = [bulky(script, LIMITS.look_ahead_bytes or 0), taken_at_once(script, "processor-1/1")]
    for entry in entries:
        script.call(entry, last_ms=5)
        script.tombstone(entry)
    return script.history()


@breach(Kind.BOUND, "more taken by one instance, whose hands were full of bytes that it had renewed")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    first = bulky(script, LIMITS.look_ahead_bytes or 0)
    assert first.registration is not None
    entries = [script.register(first.registration.original), taken_at_once(script, "processor-1/1")]
    for entry in entries:
        script.call(entry, last_ms=5)
        script.tombstone(entry)
    return script.history()


@breach(Kind.BOUND, "a chunk of exports, to be dead-lettered or delivered again")
def _(script: Script, choose: Choose) -> History:
    partition = choose(range(3))
    policy = choose(["dlq", "redeliver"])
    entries = [taken_of(script, partition, policy) for _ in range((LIMITS.chunk_rows or 0) + 1)]
    script.fault("kill", "processor-1")
    script.expire(entries[-1])
    for entry in entries:
        if policy == "dlq":
            script.export(entry)
        else:
            script.redeliver(entry)
    # One transaction: no ends between the tombstones.
    stones = [one for one in script.wait_log if one.outcome in EXPORTS and one.partition == partition]
    for number, stone in enumerate(stones[-len(entries) :]):
        script.wait_log = swapped(script.wait_log, stone, replace(stone, offset=stone.offset - number))
    for again in script.redelivered[1:]:
        script.done(again.place)
    return script.history()


@breach(Kind.BOUND, "calls in flight of one instance")
def _(script: Script, choose: Choose) -> History:
    together(script, LIMITS.max_in_flight + 1, instances=1)
    return script.history()


@breach(Kind.BOUND, "calls in flight of each instance, beside faults of processors")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    began_ms = script.now_ms
    together(script, LIMITS.max_in_flight * LIMITS.processes * 2, instances=2)
    fault = FaultDone("freeze", "processor-1", began_ms, script.now_ms, "state T")
    script.faults += [fault, fault]
    return script.history()


@breach(Kind.BOUND, "calls in flight of all, long after the faults of processors")
def _(script: Script, choose: Choose) -> History:
    together(script, LIMITS.max_in_flight * LIMITS.processes + 1, instances=3)
    return script.history()


@breach(Kind.BOUND, "memory")
def _(script: Script, choose: Choose) -> History:
    sample = RssSample(script.now_ms, "processor-2", 77, LIMITS.rss_bytes["processor"] + 1)
    return replace(script.history(), limits=replace(LIMITS, samples=[sample]))


def bulky(script: Script, size: int) -> WaitEntry:
    """Return a registration of a new record that counts for so many bytes in its processor's hands."""
    entry = taken_at_once(script, "processor-1/1")
    assert entry.registration is not None
    script.input_bytes[entry.registration.original] = size
    return entry


def taken_of(script: Script, partition: int, policy: str) -> WaitEntry:
    """Return a registration in a partition of the wait topic; what falls into others is done."""
    while True:
        place = script.publish(1)
        entry = script.register(place, policy=policy)
        script.commit(place)
        if entry.partition == partition:
            return entry
        script.call(entry, last_ms=5)
        script.tombstone(entry)
