"""Bounds passed (P7)."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.history import FaultDone, History, RssSample
from tests.unit.chaos.breaches.planting import Choose, breach, taken_at_once, together
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
