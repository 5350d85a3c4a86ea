"""Without room a member stays alive in its group, and consumption is paused only when that goes on."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.prefetch import PAUSE_AT, Pausing, Prefetch
from tests.unit.processor.pipeline_bench import PipelineBench


def test_a_member_without_room_polls_twice_a_second() -> None:
    pausing = Pausing()
    assert pausing.poll_due(0.0)
    pausing.polled(0.0)
    assert not pausing.poll_due(0.4)
    assert pausing.poll_due(0.5)


def test_it_pauses_when_several_polls_have_brought_records() -> None:
    pausing = Pausing()
    assert not pausing.pause_due(PAUSE_AT - 1)
    assert pausing.pause_due(PAUSE_AT)
    pausing.paused = True
    assert not pausing.pause_due(PAUSE_AT + 1), "it is paused already"


def test_it_resumes_when_there_is_a_quarter_of_the_room_that_there_is_with_nothing_in_hand() -> None:
    pausing = Pausing()
    assert not pausing.resume_due(36, 36), "it isn't paused"
    pausing.paused = True
    assert not pausing.resume_due(8, 36)
    assert pausing.resume_due(9, 36)


@pytest.mark.guarantee("P7.5")
def test_with_nothing_in_hand_it_resumes_whatever_the_bounds_are_and_however_large_records_have_been() -> None:
    async def main() -> None:
        poll_loop = PipelineBench().poll_loop

        @given(
            st.integers(1, 3000),
            st.integers(1, 30_000),
            st.integers(1, 1 << 28),
            st.lists(st.tuples(st.integers(1, 1000), st.integers(0, 1 << 30)), max_size=10),
        )
        def resumes(n: int, max_records: int, max_bytes: int, fetches: list[tuple[int, int]]) -> None:
            poll_loop.prefetch = Prefetch(n, max_records, max_bytes)
            for records, size in fetches:
                poll_loop.prefetch.observe_size(records, size)
            poll_loop.pausing.paused = True
            poll_loop.consume(0.0)
            assert not poll_loop.pausing.paused, f"a bound of {poll_loop.prefetch.bound}"

        resumes()

    asyncio.run(main())
