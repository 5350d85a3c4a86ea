"""What operators do by `waitreg`, and other programs by a plain client: offsets, replays, dead letters, deletions.

An action that finds nothing to do has happened, and says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from tests.chaos.faults.processes import taken
from tests.chaos.history.history import Act, Concerned, Partition, topics_again
from tests.chaos.history.watch import bounds_of, committed_of, partitions_of, reader
from tests.chaos.schedule import PlannedFault
from tests.chaos.stage import Scene
from tests.support.command import Ended, run_waitreg
from tests.support.waiting import wait_until
from wait_registry.settings.processor import RedeliverTo

# A killed member leaves the group when its session is over; Postgres, which the commands ask, may be frozen.
PATIENCE_S, POLL_S, COMMAND_S = 90.0, 0.5, 240.0
MOST_BACK, MOST_REPLAYED, MOST_LETTERS = 200, 100, 40
HAS_MEMBERS = 3
BECAUSE = ("--reason", "chaos", "--send")

Offsets = Mapping[Partition, tuple[int, int, int]]
"""First offset, committed offset (the first if there is none) and end, by partition."""
Moving = Callable[[Scene, Random], object]


def moved(scene: Scene, fault: PlannedFault, *, move: Moving) -> str:
    """End all processors, have the group's offsets moved, and start them again.

    No process commits meanwhile, so what differs after it is what the action has moved.
    """
    with scene.lock_of("group"), taken(scene, fault, "start") as processors, scene.lock_of("broker"):
        for processor in processors:
            processor.stop()
        scene.pause(fault.for_s)
        before = _offsets(scene)
        move(scene, _random(scene, fault))
        after = _offsets(scene)
    pairs = ((place, was, after[place][1]) for place, (_, was, _) in before.items())
    found = [
        Concerned(Act.PASSED, place, range(was, now)) if now > was else Concerned(Act.REWOUND, place, range(now, was))
        for place, was, now in pairs
        if now != was
    ]
    return _noted(scene, fault, found)


def rewind(scene: Scene, random: Random) -> None:
    """`waitreg rewind`, to an offset, to a time, or of an own topic to its beginning."""
    kind, ((topic, number), to) = random.choice(("offset", "offset", "time", "own")), _earlier(scene, random)
    at = datetime.now(UTC) + timedelta(seconds=random.uniform(-15, 0))
    own = random.choice(topics_again(scene.place.settings))
    where = {
        "offset": ("--topic", topic, "--partition", str(number), "--to-offset", str(to)),
        "time": ("--to-time", at.isoformat()),
        "own": ("--topic", own, "--to-earliest"),
    }[kind]
    _run(scene, lambda ended: ended.code != HAS_MEMBERS, "rewind", *where)


def commit_back(scene: Scene, random: Random) -> None:
    """Another program commits an earlier offset of the input."""
    place, to = _earlier(scene, random)
    _commit(scene, place, to)


def commit_forward(scene: Scene, random: Random, *, own: bool) -> None:
    """Another program commits a later offset of the input, or of an own topic, where most is to be consumed."""
    topics = topics_again(scene.place.settings) if own else [scene.place.input]
    place, (_, committed, end) = max(_offsets(scene, *topics).items(), key=lambda each: each[1][2] - each[1][1])
    _commit(scene, place, random.randint(min(committed + 1, end), end))


def replay(scene: Scene, fault: PlannedFault) -> str:
    """`waitreg replay` of what was passed over, or of some other records of the input."""
    random = _random(scene, fault)
    with scene.lock_of(fault.target):
        with scene.lock_of("broker"):
            offsets = _offsets(scene, scene.place.input)
        place, (first, _, end) = random.choice(list(offsets.items()))
        start = random.randint(first, max(first, end - 1))
        passed = {one.partition: one.offsets for one in _done(scene, Act.PASSED) if one.partition in offsets}
        ranges = passed or {place: range(start, min(end, start + MOST_REPLAYED))}
        named = [f"{topic}:{number}:{each.start}-{each.stop}" for (topic, number), each in ranges.items() if each]
        scene.begins(fault)
        if named:
            # By this path the judge tells its calls from those of the group.
            own = f"{scene.place.settings.processor.handler}replay-{fault.at_s:g}/1"
            _run(scene, lambda ended: True, "replay", *named, WAITREG_PROCESSOR__HANDLER=own)
        return _noted(scene, fault, [Concerned(Act.REPLAYED, *each) for each in ranges.items()])


def delete_records(scene: Scene, fault: PlannedFault) -> str:
    """Another program deletes records of an own topic, up to what is committed or beyond; the group continues.

    What was passed over there is kept, which the judge wants to see.
    """
    random, kept = _random(scene, fault), {one.partition for one in _done(scene, Act.PASSED)}
    with scene.lock_of(fault.target), scene.lock_of("group"), scene.lock_of("broker"):
        scene.begins(fault)
        offsets = {place: each for place, each in _own_offsets(scene).items() if place not in kept}
        place, (_, committed, end) = max(offsets.items(), key=lambda each: each[1][2] - each[1][0])
        before = random.choice((committed, random.randint(committed, max(committed, end))))
        scene.tap.read_to({place: before})
        committed = _own_offsets(scene)[place][1]
        for answer in scene.place.topics.admin.delete_records([TopicPartition(*place, before)]).values():
            answer.result(PATIENCE_S)
        return _noted(scene, fault, [Concerned(Act.DELETED, place, range(committed, before))])


def dead_letters(scene: Scene, fault: PlannedFault, *, verb: str) -> str:
    """`waitreg dlq redrive` or `archive`, of some dead letters."""
    random, processor = _random(scene, fault), scene.place.settings.processor
    given = ["--limit", str(random.randint(1, MOST_LETTERS))]
    if verb == "redrive":
        given += ["--rate", "100", "--may-be-done", "--finished-late", "--without-members"]
        if processor.redeliver_to is RedeliverTo.ORIGIN and random.random() < 0.5:
            given += ["--to", "origin"]
    with scene.lock_of(fault.target):
        scene.begins(fault)
        return _acted(scene, verb, *given)


def purge(scene: Scene, fault: PlannedFault) -> str:
    """`waitreg dlq purge --delete-records` of what is there, which open ones forbid, and again once it is archived."""
    settings, said = scene.place.settings, []
    topic, now = settings.dead_letter.topic, datetime.now(UTC).isoformat()
    with scene.lock_of(fault.target):
        scene.begins(fault)
        for archived in (False, True):
            if archived:
                _acted(scene, "archive")
            with scene.lock_of("broker"):
                scene.tap.read_to({place: end for place, (*_, end) in _offsets(scene, topic).items()})
            deletion = ("purge", topic, "--before", now, "--delete-records", *BECAUSE)
            ended = _run(scene, lambda ended: ended.output.startswith("records of"), "dlq", *deletion, codes=(0, 1))
            said += [line for line in ended.output.splitlines() if line.startswith(("partition", "there"))]
    return "; ".join(said)


def _acted(scene: Scene, verb: str, *given: str) -> str:
    which = f"group={scene.place.settings.processor.group}"
    begun = ("dlq", verb, which, *given, *BECAUSE, "--json")
    ended = _run(scene, lambda ended: ended.output.startswith("{"), *begun, codes=(0, 1))
    found = json.loads(ended.output)
    return f"of the dead letters were {found['counts'] or 'none there'}, {found.get('state', 'nothing to be done')}"


def _run(
    scene: Scene, answers: Callable[[Ended], bool], *arguments: str, codes: tuple[int, ...] = (0,), **variables: str
) -> Ended:
    """Run the command until it answers, and require one of these codes."""

    def answered() -> Ended | None:
        settings, folder = scene.place.settings, scene.place.directory
        ended = run_waitreg(folder, *arguments, settings=settings, variables=variables, deadline_s=COMMAND_S)
        return ended if answers(ended) or scene.ended.is_set() else None

    ended = wait_until(answered, PATIENCE_S, f"an answer of waitreg {' '.join(arguments)}", POLL_S)
    if ended.code not in codes:
        raise RuntimeError(f"waitreg {' '.join(arguments)} ended with {ended.code}: {ended.output}{ended.errors}")
    return ended


def _offsets(scene: Scene, *topics: str) -> Offsets:
    """Ask where the group is in these topics, or in all that it consumes."""
    settings, asked = scene.place.settings, topics or (scene.place.input, *topics_again(scene.place.settings))
    with closing(reader(settings.kafka.bootstrap_servers, "read_uncommitted", settings.processor.group)) as consumer:
        places = [(topic, number) for topic in asked for number in partitions_of(consumer, topic)]
        committed, bounds = committed_of(consumer, places), {place: bounds_of(consumer, place) for place in places}
    return {place: (first, max(first, committed.get(place, 0)), end) for place, (first, end) in bounds.items()}


def _own_offsets(scene: Scene) -> Offsets:
    return _offsets(scene, *topics_again(scene.place.settings))


def _earlier(scene: Scene, random: Random) -> tuple[Partition, int]:
    place, (first, committed, _) = random.choice(list(_offsets(scene, scene.place.input).items()))
    return place, committed - random.randint(0, min(MOST_BACK, committed - first))


def _commit(scene: Scene, place: Partition, offset: int) -> None:
    """Commit without metadata."""
    asked = ConsumerGroupTopicPartitions(scene.place.settings.processor.group, [TopicPartition(*place, offset)])
    for answer in scene.place.topics.admin.alter_consumer_group_offsets([asked]).values():
        for each in answer.result(PATIENCE_S).topic_partitions:
            if each.error is not None:
                raise KafkaException(each.error)


def _done(scene: Scene, act: Act) -> list[Concerned]:
    return [one for each in list(scene.concerned.values()) for one in each if one.act is act]


def _noted(scene: Scene, fault: PlannedFault, found: list[Concerned]) -> str:
    scene.concerned[fault] = found
    named = (f"{act} {topic}:{number}:{each.start}-{each.stop}" for act, (topic, number), each in found)
    return ", ".join(named) or "nothing was to be done"


def _random(scene: Scene, fault: PlannedFault) -> Random:
    return Random(f"{scene.schedule.seed}/{fault}")


ACTIONS: Final[Mapping[str, Callable[[Scene, PlannedFault], str]]] = {
    "rewind": partial(moved, move=rewind),
    "commit_back": partial(moved, move=commit_back),
    "commit_forward": partial(moved, move=partial(commit_forward, own=False)),
    "pass_retries": partial(moved, move=partial(commit_forward, own=True)),
    "replay": replay,
    "delete_records": delete_records,
    "redrive": partial(dead_letters, verb="redrive"),
    "archive": partial(dead_letters, verb="archive"),
    "purge": purge,
}
"""As the faults: each does what is planned, and returns the proof."""
