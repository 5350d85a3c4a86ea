"""What operators do by `waitreg`, and other programs by a plain client; what finds nothing to do says so."""

from __future__ import annotations

import json
import time
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
from tests.support.command import run_waitreg
from tests.support.waiting import wait_until
from wait_registry.kafka.committed_offsets import committed_offsets
from wait_registry.kafka.errors import is_transient
from wait_registry.kafka.group_description import describe_group
from wait_registry.settings.processor import RedeliverTo

# A killed member leaves the group when its session is over; Postgres, which `waitreg dlq` asks, may be frozen.
PATIENCE_S, POLL_S, COMMAND_S = 90.0, 0.5, 240.0
# Some runs have no dead letters.
LETTERS_S = 30.0
MOST_BACK, MOST_REPLAYED, MOST_LETTERS = 200, 100, 40
BECAUSE = ("--reason", "chaos", "--send")

Offsets = Mapping[Partition, tuple[int, int, int]]
"""First offset, committed offset (the first if there is none) and end, by partition."""


def moved(scene: Scene, fault: PlannedFault, *, move: Callable[[Scene, Random], object]) -> str:
    """End all processors, have the group's offsets moved, and start them again.

    No process commits meanwhile, so what differs after it is what the action has moved.
    """
    kafka, group = scene.place.settings.kafka, scene.place.settings.processor.group
    with scene.lock_of("group"), taken(scene, fault, "start") as processors, scene.lock_of("broker"):
        for processor in processors:
            processor.stop()
        scene.pause(fault.for_s)
        wait_until(lambda: not describe_group(kafka, group).held, PATIENCE_S, f"the end of {group}'s sessions")
        before = _offsets(scene)
        move(scene, _random(scene, fault))
        after = _offsets(scene)
        concerned = scene.concerned[fault] = []
        for place, (_, was, _) in before.items():
            if (now := after[place][1]) != was:
                act = Act.PASSED if now > was else Act.REWOUND
                concerned.append(Concerned(act, place, range(min(was, now), max(was, now))))
    return _said(concerned)


def rewind(scene: Scene, random: Random) -> None:
    """`waitreg rewind`, to an offset, to a time, or of an own topic to its beginning."""
    (topic, number), to = _earlier(scene, random)
    at = datetime.now(UTC) + timedelta(seconds=random.uniform(-15, 0))
    own = random.choice(topics_again(scene.place.settings))
    offset = ("--topic", topic, "--partition", str(number), "--to-offset", str(to))
    where = random.choice((offset, offset, ("--to-time", at.isoformat()), ("--topic", own, "--to-earliest")))
    _run(scene, "rewind", *where)


def commit_back(scene: Scene, random: Random) -> None:
    """Another program commits an earlier offset of the input."""
    _commit(scene, *_earlier(scene, random), keeps=random.random() < 0.5)


def commit_forward(scene: Scene, random: Random, *, own: bool) -> None:
    """Another program commits a later offset of the input, or of an own topic, where most is to be consumed."""
    topics = topics_again(scene.place.settings) if own else [scene.place.input]
    place, (_, committed, end) = max(_offsets(scene, *topics).items(), key=lambda each: each[1][2] - each[1][1])
    _commit(scene, place, random.randint(min(committed + 1, end), end), keeps=random.random() < 0.5)


def replay(scene: Scene, fault: PlannedFault) -> str:
    """`waitreg replay` of what was passed over, or of some other records of the input."""
    with scene.lock_of(fault.target):
        with scene.lock_of("broker"):
            offsets, random = _offsets(scene, scene.place.input), _random(scene, fault)
        place, (first, _, end) = random.choice(list(offsets.items()))
        start = random.randint(first, max(first, end - 1))
        ranges = {place: range(start, min(end, start + MOST_REPLAYED))}
        ranges = {place: each for place, each in _passed(scene).items() if place in offsets} or ranges
        named = [f"{topic}:{number}:{each.start}-{each.stop}" for (topic, number), each in ranges.items() if each]
        scene.begins(fault)
        if named:
            # By this path the judge tells its calls from those of the group.
            handler = f"{scene.place.settings.processor.handler}replay-{fault.at_s:g}/1"
            _run(scene, "replay", *named, WAITREG_PROCESSOR__HANDLER=handler)
        concerned = scene.concerned[fault] = [Concerned(Act.REPLAYED, *each) for each in ranges.items()]
        return _said(concerned)


def delete_records(scene: Scene, fault: PlannedFault) -> str:
    """Another program deletes records of an own topic, up to what is committed or beyond; the group continues.

    What was passed over is kept, as the judge wants to see.
    """
    own, random = topics_again(scene.place.settings), _random(scene, fault)
    with scene.lock_of(fault.target), scene.lock_of("group"), scene.lock_of("broker"):
        scene.begins(fault)
        offsets = {place: each for place, each in _offsets(scene, *own).items() if place not in _passed(scene)}
        place, (_, committed, end) = max(offsets.items(), key=lambda each: each[1][2] - each[1][0])
        before = random.choice((committed, random.randint(committed, max(committed, end))))
        scene.tap.read_to({place: before})
        committed = _offsets(scene, place[0])[place][1]
        for answer in scene.place.topics.admin.delete_records([TopicPartition(*place, before)]).values():
            answer.result(PATIENCE_S)
        concerned = scene.concerned[fault] = [Concerned(Act.DELETED, place, range(committed, before))]
        return _said(concerned)


def redrive(scene: Scene, fault: PlannedFault) -> str:
    """`waitreg dlq redrive` of some dead letters, to the origin only where the group would know them again."""
    random, to = _random(scene, fault), scene.place.settings.processor.redeliver_to
    target = ("--to", "origin") if to is RedeliverTo.ORIGIN and random.random() < 0.5 else ()
    allowed = ("--may-be-done", "--finished-late", "--without-members", "--rate", "100")
    return _act(scene, fault, "redrive", "--limit", str(random.randint(1, MOST_LETTERS)), *allowed, *target)


def archive(scene: Scene, fault: PlannedFault) -> str:
    """`waitreg dlq archive` of some dead letters."""
    return _act(scene, fault, "archive", "--limit", str(_random(scene, fault).randint(1, MOST_LETTERS)))


def purge(scene: Scene, fault: PlannedFault) -> str:
    """`waitreg dlq purge --delete-records` of what is there, which open ones forbid, and again once it is archived."""
    topic, now = scene.place.settings.dead_letter.topic, datetime.now(UTC).isoformat()

    def delete() -> str:
        with scene.lock_of("broker"):
            scene.tap.read_to({place: end for place, (*_, end) in _offsets(scene, topic).items()})
        return _dlq(scene, "records of", "purge", topic, "--before", now, "--delete-records").replace("\n", "; ")

    return f"{delete()}, {_act(scene, fault, 'archive')}, {delete()}"


def _act(scene: Scene, fault: PlannedFault, verb: str, *options: str) -> str:
    with scene.lock_of(fault.target):
        scene.begins(fault)
        found = json.loads(_dlq(scene, "{", verb, f"group={scene.place.settings.processor.group}", *options, "--json"))
    return f"of the dead letters were {found['counts'] or 'none there'}, {found.get('state', 'nothing to be done')}"


def _dlq(scene: Scene, beginning: str, *arguments: str) -> str:
    """Run `waitreg dlq` until it prints what it found, whether or not it could act on all of that, or finds nothing."""
    began_s = time.monotonic()

    def answer() -> str:
        said = _run(scene, "dlq", *arguments, *BECAUSE, codes=(0, 1, 2, 3))
        if "there is no dead letter" in said and time.monotonic() - began_s > LETTERS_S:
            return json.dumps({"counts": {}})
        return said if said.startswith(beginning) else ""

    return wait_until(answer, PATIENCE_S, f"an answer of waitreg dlq {' '.join(arguments)}", POLL_S)


def _run(scene: Scene, *arguments: str, codes: tuple[int, ...] = (0,), **variables: str) -> str:
    settings, folder = scene.place.settings, scene.place.directory
    ended = run_waitreg(folder, *arguments, settings=settings, variables=variables, deadline_s=COMMAND_S)
    if ended.code not in codes:
        raise RuntimeError(f"waitreg {' '.join(arguments)} ended with {ended.code}: {ended.output}{ended.errors}")
    return ended.output or ended.errors


def _offsets(scene: Scene, *topics: str) -> Offsets:
    """Ask where the group is in these topics, or in all that it consumes."""
    settings, asked = scene.place.settings, topics or (scene.place.input, *topics_again(scene.place.settings))

    def ask() -> Offsets | None:
        try:
            places = [(topic, number) for topic in asked for number in partitions_of(consumer, topic)]
            committed, bounds = committed_of(consumer, places), {place: bounds_of(consumer, place) for place in places}
        except KafkaException as error:
            if is_transient(error.args[0]):
                return None  # the broker has just come back
            raise
        return {place: (first, max(first, committed.get(place, 0)), end) for place, (first, end) in bounds.items()}

    with closing(reader(settings.kafka.bootstrap_servers, "read_uncommitted", settings.processor.group)) as consumer:
        return wait_until(ask, PATIENCE_S, "an answer of the broker", POLL_S)


def _earlier(scene: Scene, random: Random) -> tuple[Partition, int]:
    place, (first, committed, _) = random.choice(list(_offsets(scene, scene.place.input).items()))
    return place, committed - random.randint(0, min(MOST_BACK, committed - first))


def _commit(scene: Scene, place: Partition, offset: int, keeps: bool) -> None:
    """Commit without metadata, or with that of the offset before."""
    kafka, group = scene.place.settings.kafka, scene.place.settings.processor.group
    moved = committed_offsets(kafka, group, [place])[0] if keeps else TopicPartition(*place)
    moved.offset = offset
    asked = ConsumerGroupTopicPartitions(group, [moved])
    for answer in scene.place.topics.admin.alter_consumer_group_offsets([asked]).values():
        for each in answer.result(PATIENCE_S).topic_partitions:
            if each.error is not None:
                raise KafkaException(each.error)


def _passed(scene: Scene) -> dict[Partition, range]:
    done = [one for each in list(scene.concerned.values()) for one in each]
    return {one.partition: one.offsets for one in done if one.act is Act.PASSED}


def _said(concerned: list[Concerned]) -> str:
    named = (f"{act} {topic}:{number}:{each.start}-{each.stop}" for act, (topic, number), each in concerned)
    return ", ".join(named) or "nothing was to be moved"


def _random(scene: Scene, fault: PlannedFault) -> Random:
    return Random(f"{scene.schedule.seed}/{fault}")


ACTIONS: Final[Mapping[str, Callable[[Scene, PlannedFault], str]]] = {
    "rewind": partial(moved, move=rewind),
    "commit_back": partial(moved, move=commit_back),
    "commit_forward": partial(moved, move=partial(commit_forward, own=False)),
    "pass_retries": partial(moved, move=partial(commit_forward, own=True)),
    "replay": replay,
    "delete_records": delete_records,
    "redrive": redrive,
    "archive": archive,
    "purge": purge,
}
"""As the faults: each does what is planned, and returns the proof."""
