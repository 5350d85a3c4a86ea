"""examples/batch_enrich/gathering.py: a batch belongs to all of its records; none decides for the others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.support.module_of_file import load_module

gathering = load_module(Path(__file__).parents[3] / "examples" / "batch_enrich" / "gathering.py")
NEVER_S = 3600.0


class Service:
    """Answers a batch when it may."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def ask(self, questions: dict[str, Any]) -> dict[str, Any]:
        self.batches.append(list(questions))
        self.asked.set()
        await self.may_answer.wait()
        return {name: f"{question}!" for name, question in questions.items()}


async def test_a_full_batch_leaves_at_once_and_the_rest_when_it_closes() -> None:
    service = Service()
    service.may_answer.set()
    batch = gathering.Gathering(service.ask, most=2, wait_s=NEVER_S)
    answers = [asyncio.create_task(batch.answer_for(name, name)) for name in ("a", "b", "c")]
    assert await asyncio.gather(*answers[:2]) == ["a!", "b!"]
    assert not answers[2].done()
    await batch.close()
    assert await answers[2] == "c!"
    assert service.batches == [["a", "b"], ["c"]]


async def test_a_record_that_gives_up_ends_neither_its_batch_nor_the_others() -> None:
    service = Service()
    batch = gathering.Gathering(service.ask, most=2, wait_s=NEVER_S)
    impatient, patient = (asyncio.create_task(batch.answer_for(name, name)) for name in ("a", "b"))
    await service.asked.wait()
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    service.may_answer.set()
    assert await patient == "b!"
    await batch.close()


async def test_who_gave_up_before_the_batch_left_is_not_asked_about() -> None:
    service = Service()
    service.may_answer.set()
    batch = gathering.Gathering(service.ask, most=9, wait_s=NEVER_S)
    gone, there = (asyncio.create_task(batch.answer_for(name, name)) for name in ("a", "b"))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.sleep(0)
    await batch.close()
    assert await there == "b!"
    assert service.batches == [["b"]]


async def test_the_same_record_twice_gets_an_answer_twice() -> None:
    service = Service()
    service.may_answer.set()
    batch = gathering.Gathering(service.ask, most=9, wait_s=0)
    assert await asyncio.gather(batch.answer_for("a", 1), batch.answer_for("a", 2)) == ["1!", "2!"]
    assert service.batches == [["a"], ["a"]]
    await batch.close()
