"""Registrations that don't say what was told, exports that don't follow from them, dead letters for nothing."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.checker.violation import Kind
from tests.chaos.history.entries import DEAD_LETTERED, MALFORMED, UNREGISTRABLE, Registration, WaitEntry
from tests.chaos.history.history import History
from tests.unit.chaos.breaches.planting import Choose, breach, done_ones, swapped, taken
from tests.unit.chaos.script import TOLD, Script
from wait_registry.demo.calls import ABORTED


@breach(Kind.MISROUTED, "dead-lettered, though it was to be delivered again")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script, policy="redeliver")
    script.fault("kill", "processor-1")
    script.export(entry)
    return script.history()


@breach(Kind.MISROUTED, "delivered again, though it was to be dead-lettered")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-1")
    script.done(script.redeliver(entry).place)
    return script.history()


@breach(Kind.MISROUTED, "delivered again beyond its attempts")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script, policy="redeliver")
    script.fault("kill", "processor-1")
    for _ in range(TOLD.max_deliveries):
        place = script.redeliver(entry).place
        entry = script.register(place, policy="redeliver")
        script.commit(place)
        script.fault("kill", "processor-1")
    script.call(entry)
    script.tombstone(entry)
    return script.history()


@breach(Kind.MISROUTED, "dead-lettered elsewhere than its registration says", Kind.NOT_AS_TOLD)
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.fault("kill", "processor-1")
    other = saying(script, entry, dead_letter_topic="elsewhere")
    script.export(other)
    return script.history()


@breach(Kind.NOT_AS_TOLD, "another policy than was told")
def _(script: Script, choose: Choose) -> History:
    again = next(one for one in script.wait_log if one.registration and one.registration.expiry_policy == "redeliver")
    assert again.registration is not None
    return replace(script.history(), told=replace(TOLD, expiry_policy="dlq"))


@breach(Kind.NOT_AS_TOLD, "another topic, other attempts, or a longer or shorter life than was told")
def _(script: Script, choose: Choose) -> History:
    entry = choose(done_ones(script))
    assert entry.registration is not None
    expires_at_ms = entry.registration.expires_at_ms
    said: dict[str, object] = choose(
        [
            {"dead_letter_topic": "elsewhere"},
            {"max_deliveries": 77},
            {"expires_at_ms": expires_at_ms + 1_000},
            {"expires_at_ms": entry.append_ms + 2_900},
        ]
    )
    # Long before the first fault.
    saying(script, entry, **said)
    return script.history()


@breach(Kind.NOT_AS_TOLD, "a life so short that the little while in which the machine stood still doesn't explain it")
def _(script: Script, choose: Choose) -> History:
    script.wait(30_000)
    place = script.publish(1)
    script.look()
    expires_at_ms = script.now_ms + TOLD.ttl_ms
    script.now_ms += 1_700
    script.look()
    script.wait(5_500)
    entry = saying(script, script.register(place), expires_at_ms=expires_at_ms)
    script.commit(place)
    script.fault("kill", "processor-1")
    script.export(entry)
    return script.history()


@breach(Kind.UNFOUNDED, "failed, without a call, or although its call had succeeded")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    if choose([True, False]):
        script.call(entry)
    script.letter(entry)
    script.look()
    script.tombstone(entry, DEAD_LETTERED)
    return script.history()


@breach(Kind.UNFOUNDED, "failed after one of two tries, which was to be tried again")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    script.call(entry, status=choose([*TOLD.retry_statuses, 0, ABORTED]))
    script.letter(entry)
    script.look()
    script.tombstone(entry, DEAD_LETTERED)
    return script.history()


@breach(Kind.DEAD_LETTERED_AGAIN, "failed twice, registered once, or twice, whatever befell its process")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    assert entry.registration is not None
    if choose([True, False]):
        entry = script.register(entry.registration.original)
    script.call(entry, status=400)
    script.letter(entry)
    script.fault("freeze", "processor-1", for_ms=100)
    script.letter(entry)
    script.look()
    script.tombstone(entry, DEAD_LETTERED)
    return script.history()


@breach(Kind.DEAD_LETTERED_AGAIN, "failed under each of two registrations, and nothing has moved its partition")
def _(script: Script, choose: Choose) -> History:
    entry = taken(script)
    assert entry.registration is not None
    instance = choose(["processor-1/1", "processor-2/1"])
    for one in (entry, script.register(entry.registration.original, instance)):
        script.call(one, status=400)
        script.letter(one)
        script.look()
        script.tombstone(one, DEAD_LETTERED)
    return script.history()


@breach(Kind.DEAD_LETTERED_AGAIN, "not registrable, and dead-lettered twice")
def _(script: Script, choose: Choose) -> History:
    script.wait(40_000)
    place = script.publish(1)
    script.large.add(place)
    script.fault("kill", choose(["sink-1", "sweeper-1"]), for_ms=100)
    for _ in range(2):
        script.unregistered(place, UNREGISTRABLE)
    script.commit(place)
    return script.history()


@breach(Kind.DEAD_LETTERED_AGAIN, "not registrable, and dead-lettered more often than its partition can have moved")
def _(script: Script, choose: Choose) -> History:
    script.wait(40_000)
    place = script.publish(1)
    script.large.add(place)
    script.fault("kill", "processor-1", for_ms=100)
    for _ in range(4):
        script.unregistered(place, UNREGISTRABLE)
    script.commit(place)
    return script.history()


@breach(Kind.UNFOUNDED, "an ordinary record as unregistrable or malformed")
def _(script: Script, choose: Choose) -> History:
    place = script.publish(1)
    script.unregistered(place, choose([UNREGISTRABLE, MALFORMED]))
    script.commit(place)
    return script.history()


def saying(script: Script, entry: WaitEntry, **said: object) -> WaitEntry:
    """Have a registration say something else."""
    registration = entry.registration
    assert isinstance(registration, Registration)
    other = replace(entry, registration=replace(registration, **said))  # type: ignore[arg-type]
    script.wait_log = swapped(script.wait_log, entry, other)
    return other
