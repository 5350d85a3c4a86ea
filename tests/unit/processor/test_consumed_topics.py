"""Which topics are consumed, the lag of partitions that aren't fetched, and what keeps one from being read."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from processor.intake.absent_topics import AbsentTopics
from processor.intake.assigned_log import AssignedLog
from processor.intake.broker_watch import IDENTITY_EVERY_S
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.group_config import tuning
from processor.intake.log_ends import First, LogEnds, due_end
from processor.intake.open_transactions import OPEN_FOR_S, OpenTransactions
from processor.intake.subscription import subscription
from processor.protocol.events import Assigned, Instant
from processor.writing.emptied_topics import EmptiedTopics
from tests.unit.processor.loop_bench import LoopBench
from tests.unit.processor.parts import PLACE, HaltedClock
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.records.topics import TopicPartition
from wait_registry.settings.tree import Settings


def test_added_partitions_are_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    counts = iter([5, 8, 8])
    described = lambda *_: {"orders": SimpleNamespace(topic_id="1", partitions=[None] * next(counts))}  # noqa: E731
    monkeypatch.setattr("processor.intake.consumed_topics.describe_existing", described)
    consumed, admin = ConsumedTopics("group", {"orders": "1"}), SimpleNamespace()
    for _ in range(3):
        asked: Any = admin
        consumed.recreated(asked)
    assert [line for line in caplog.messages if "partitions" in line] == [
        "topic orders has 8 partitions now, it had 5. The group consumes the new ones from their beginning, within a "
        "minute"
    ]


def test_the_client_finds_them_as_often_as_the_topics_are_compared() -> None:
    assert tuning(Settings())["topic.metadata.refresh.interval.ms"] <= IDENTITY_EVERY_S * 1000


A, B = "a.group.redeliver", "b.group.redeliver"
INPUTS = ["a", "b"]

Answer = Mapping[str, str] | None


def after(*answers: Answer) -> tuple[list[list[str]], ConsumedTopics]:
    """Return what was subscribed to after looks with these answers (None: no answer), and the topics."""
    settings = Settings.model_validate({"processor": {"topics": INPUTS, "group": "group"}})
    consumed = ConsumedTopics("group", {}, subscription(settings, "instance", ()).values())
    left = list(answers)
    subscribed: list[list[str]] = []

    def look(topics: Iterable[str]) -> Mapping[str, str]:
        answer = left.pop(0)
        if answer is None:
            raise TransientError("an outage")
        return {topic: answer[topic] for topic in topics if topic in answer}

    absent = AbsentTopics(look, consumed, lambda topics: subscribed.append(sorted(topics)))

    async def run() -> None:
        while left:
            await absent.run_once()

    asyncio.run(run())
    return subscribed, consumed


@pytest.mark.parametrize(
    ("answers", "subscribed"),
    [
        ([{}, {}], []),
        ([{A: "1"}], []),
        ([{A: "1"}, {A: "1"}], [[A, *INPUTS]]),
        ([{A: "1"}, {}, {A: "1"}], []),
        ([{A: "1"}, {A: "2"}], []),
        ([{A: "1"}, {A: "2"}, {A: "2"}], [[A, *INPUTS]]),
        ([{A: "1"}, None, {A: "1"}], [[A, *INPUTS]]),
        ([{A: "1"}, {A: "1", B: "2"}, {B: "2"}], [[A, *INPUTS], [A, B, *INPUTS]]),
    ],
)
def test_two_looks_must_find_the_same_topic(answers: list[Answer], subscribed: list[list[str]]) -> None:
    assert after(*answers)[0] == [sorted(topics) for topics in subscribed]


def test_the_id_that_was_seen_belongs_to_the_offsets() -> None:
    subscribed, consumed = after({A: "1"}, {A: "1"})
    assert len(subscribed) == 1
    assert (consumed.id_of(A), consumed.absent) == ("1", [B])


async def test_each_reason_why_topics_are_not_emptied_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    places = [("group.retry.5s", 0), ("group.retry.9s", 0), ("group.retry.9s", 1)]
    denied = {place: ConfigurationError(f"deleting of {place[0]}[{place[1]}]: denied") for place in places}
    policy = {places[2]: ConfigurationError("deleting of group.retry.9s[1]: policy")}
    answers = iter([denied, denied, denied | policy, dict.fromkeys(places, TransientError("away"))])
    monkeypatch.setattr(EmptiedTopics, "_delete", lambda *_: next(answers))
    no_admin: Any = None
    topics: Any = {topic: SimpleNamespace(own=True) for topic, _ in places}
    partitions: Any = {place: SimpleNamespace(confirmed=7) for place in places}
    emptied = EmptiedTopics(no_admin, topics, {place: AssignedLog(place, 7, "id") for place in places}, partitions)
    for _ in range(4):
        await emptied.run_once()
    ends = [(line.partition(" If ")[0].rpartition(": ")[2], line.rpartition(": ")[2]) for line in caplog.messages]
    assert ends == [("denied", "group.retry.5s, group.retry.9s"), ("policy", "group.retry.9s")]


NOTHING: Any = {}


@pytest.mark.parametrize(
    "periodic",
    [
        LogEnds(NOTHING, NOTHING, set(), NOTHING, lambda _: NOTHING, lambda: 0),
        OpenTransactions(NOTHING, lambda _: NOTHING, lambda: 0.0),
        EmptiedTopics(NOTHING, NOTHING, NOTHING, NOTHING),
        AbsentTopics(lambda _: {}, SimpleNamespace(absent=[A]), NOTHING),  # type: ignore[arg-type]
    ],
    ids=lambda periodic: type(periodic).__name__,
)
async def test_no_question_waits_for_threads_of_the_handler(
    periodic: LogEnds | OpenTransactions | EmptiedTopics | AbsentTopics,
) -> None:
    """An async handler may fill the loop's executor with calls that hang."""
    loop, ended = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    call = loop.run_in_executor(None, ended.wait, 60)
    try:
        await asyncio.wait_for(periodic.run_once(), 10)
    finally:
        ended.set()
        await call


FETCHED, PAUSED, RETRIES = ("input", 1), ("input", 2), ("input.group.retry.10s", 0)
NOW_MS = 1_000_000


async def test_the_broker_is_asked_for_what_no_fetch_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    bench = LoopBench()
    consumer = bench.group_consumer
    consumer.paused.update([PAUSED, ("input", 3)])
    for place in (FETCHED, PAUSED, RETRIES):
        consumer.assigned[place] = AssignedLog(place, 4)

    def ends(_: object, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        asked.append(sorted(places))
        return dict.fromkeys(places, 10)

    def firsts(_: object, times_ms: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, First]:
        asked.append(times_ms)
        return dict.fromkeys(times_ms, (6, NOW_MS))

    given = {"topics": ["input"], "group": "group", "retry": {"delays": ["10s"]}}
    topics = subscription(Settings.model_validate({"processor": given}), "instance", ())
    bench.loop.step(Assigned(RETRIES, 4, None, None, 9, 10, True), Instant(NOW_MS, 0))
    monkeypatch.setattr("processor.intake.log_ends.ends_in_time", ends)
    monkeypatch.setattr("processor.intake.log_ends.firsts_in_time", firsts)
    nobody: Any = None
    seen = bench.loop.ends_seen
    await LogEnds(nobody, consumer.assigned, consumer.paused, topics, seen, lambda: NOW_MS).run_once()
    assert asked == [[PAUSED, RETRIES], {RETRIES: NOW_MS - 10_000 + 1}]
    assert [owner.lag for owner in consumer.assigned.values()] == [None, 6, 6]
    assert [owner.due_lag(owner.place == RETRIES) for owner in consumer.assigned.values()] == [None, 6, 2]
    await bench.pool.stop()


@pytest.mark.parametrize(
    ("first", "seen_end", "due"),
    [
        pytest.param((7, NOW_MS - 1), -1, 7, id="some are due"),
        pytest.param((-1, -1), -1, 10, id="all are due"),
        pytest.param((7, NOW_MS * 1000), 8, 8, id="one from the future was seen for the delay"),
        pytest.param((4, NOW_MS * 1000), 8, 8, id="one from the future was handled"),
        pytest.param((4, NOW_MS * 1000), -1, -1, id="that shows nothing before the delay is over"),
    ],
)
def test_records_below_the_first_that_is_too_young_are_due(first: First, seen_end: int, due: int) -> None:
    assert due_end(first, 5, 10, seen_end) == due


def warnings(caplog: pytest.LogCaptureFixture, stable_end: int, looks: list[tuple[float, int]], end: int = 30) -> int:
    """Return how many warnings come of looks: so long after the one before, at a position."""
    clock, owner = HaltedClock(), AssignedLog(PLACE, 17)
    owner.note_end(end)
    watch = OpenTransactions({PLACE: owner}, lambda places: dict.fromkeys(places, stable_end), clock.monotonic)
    for seconds, position in looks:
        clock.now_s += seconds
        owner.position = position
        asyncio.run(watch.run_once())
    return caplog.text.count("no record of input[0] could be read for 60 s, although its log has 13 more offsets")


@pytest.mark.parametrize(
    ("stable_end", "looks", "count"),
    [
        pytest.param(17, [(0, 17), (OPEN_FOR_S, 17), (OPEN_FOR_S, 17)], 1, id="a transaction stays open"),
        pytest.param(17, [(0, 17), (OPEN_FOR_S - 1, 17)], 0, id="not for long"),
        pytest.param(17, [(0, 16), (OPEN_FOR_S, 17)], 0, id="a record came meanwhile"),
        pytest.param(18, [(0, 17), (OPEN_FOR_S, 17)], 0, id="a record could be read"),
        pytest.param(30, [(0, 30), (OPEN_FOR_S, 30)], 0, id="nothing is left"),
    ],
)
def test_only_a_partition_that_can_not_be_read_is_warned_of(
    stable_end: int, looks: list[tuple[float, int]], count: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert warnings(caplog, stable_end, looks) == count
