"""Without room a member stays alive in its group, and consumption is paused only when that goes on."""

from __future__ import annotations

from processor.pausing import PAUSE_AT, Pausing


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


def test_it_resumes_when_a_quarter_of_the_bound_is_free() -> None:
    pausing = Pausing()
    assert not pausing.resume_due(36, 36), "it isn't paused"
    pausing.paused = True
    assert not pausing.resume_due(8, 36)
    assert pausing.resume_due(9, 36)
