"""An absent topic is consumed after two looks in a row have found the same topic."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import pytest

from processor.intake.absent_topics import AbsentTopics
from processor.intake.consumed_topics import ConsumedTopics
from processor.intake.subscription import subscription
from wait_registry.errors import TransientError
from wait_registry.settings.root import Settings

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
