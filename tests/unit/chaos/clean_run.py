"""A run of some fifty records in which much happens and no promise is broken."""

from __future__ import annotations

from tests.chaos.history.entries import DEAD_LETTERED, UNREGISTRABLE
from tests.unit.chaos.script import Script


def clean_run(views_at_looks: bool = False) -> Script:
    """Return the script of it: most are done, some fail, one is too large, and processes die.

    All that at-least-once allows is in it too: done and exported, `failed` and `expired`, registered again by the next
    owner, done twice, redelivered, exported by an aborted transaction and then for good, finished after its export.

    Args:
        views_at_looks: whether somebody looks at the tables with each look at the cluster.
    """
    script = Script(views_at_looks=views_at_looks)
    for number in range(30):
        script.done(script.publish(number % 3), f"processor-{1 + number % 2}/1")
    for number in range(4):
        script.failed(script.publish(number % 3))
    large = script.publish(1)
    script.large.add(large)
    script.unregistered(large, UNREGISTRABLE)
    script.commit(large)
    script.look()
    _a_kill_among_five(script)
    _a_failed_one_expires_too(script)
    _a_redelivery(script)
    _a_zombie_wakes(script)
    for number in range(6):
        script.done(script.publish(number % 3))
    script.wait(500)
    return script


def _a_kill_among_five(script: Script) -> None:
    """Play a kill with five records in hand: committed, in flight, answered, uncommitted, and an aborted export."""
    places = [script.publish(2) for _ in range(5)]
    entries = [script.register(place, "processor-2/1") for place in places]
    script.commit(places[2])
    script.look()
    script.call(entries[0])
    script.call(entries[1], status=499)
    script.fault("kill", "processor-2")
    # What was not committed comes to the other instance, under its id.
    again = [script.register(place) for place in places[3:]]
    script.commit(places[4])
    script.look()
    for entry in again:
        script.call(entry)
        script.tombstone(entry)
    for entry in entries[:3]:
        script.export(entry, committed=False)
        script.export(entry)
        script.look()


def _a_failed_one_expires_too(script: Script) -> None:
    """Play a kill between a `failed` dead letter and its tombstone."""
    place = script.publish(0)
    entry = script.register(place)
    script.commit(place)
    script.call(entry, status=400)
    script.letter(entry)
    script.fault("kill", "processor-1")
    script.export(entry)


def _a_redelivery(script: Script) -> None:
    """Play an expiry under the policy `redeliver`, whose second delivery is done."""
    place = script.publish(1)
    entry = script.register(place, "processor-3/1", "redeliver")
    script.commit(place)
    script.fault("kill", "processor-3")
    again = script.redeliver(entry)
    script.look()
    script.done(again.place, "processor-4/1")


def _a_zombie_wakes(script: Script) -> None:
    """Play a frozen processor that finishes, and fails, what had been exported while it stood still."""
    places = [script.publish(0) for _ in range(2)]
    entries = [script.register(place, "processor-4/1") for place in places]
    script.commit(places[1])
    script.look()
    fault = script.fault("freeze", "processor-4", for_ms=200)
    for entry in entries:
        script.export(entry)
    script.faults[-1] = type(fault)(fault.name, fault.target, fault.began_ms, script.now_ms, fault.happened)
    script.call(entries[0])
    script.tombstone(entries[0])
    script.letter(entries[1])
    script.tombstone(entries[1], DEAD_LETTERED)
