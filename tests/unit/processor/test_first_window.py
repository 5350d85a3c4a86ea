"""After an assignment the first records start only when a confirmed commit has passed them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from processor.first_window import FirstWindow

STEPS = st.lists(
    st.one_of(st.tuples(st.just("hold"), st.integers(1, 3)), st.tuples(st.just("confirm"), st.integers(0, 40)))
)


@given(STEPS, st.integers(1, 8))
def test_the_first_records_start_only_after_a_confirmed_commit_has_passed_them(
    steps: list[tuple[str, int]], size: int
) -> None:
    window: FirstWindow[int] = FirstWindow(size)
    offset, committed = -1, -1
    held: list[int] = []
    released: list[int] = []
    for step, number in steps:
        if step == "hold" and not window.is_open:
            offset += number
            window.hold(offset, offset)
            held.append(offset)
        elif step == "confirm":
            was_open = window.is_open
            committed = max(committed, number)
            now = window.confirm(committed)
            assert not (was_open and now)
            assert all(at < committed for at in now[: size - len(released)]), "the window's records are committed"
            released += now
            assert window.is_open == (len(released) >= size)
    assert released == held[: len(released)], "in order, and each once"
    assert not window.is_open or released == held, "once open, nothing is held back"


def test_a_commit_below_the_first_record_starts_nothing() -> None:
    window: FirstWindow[str] = FirstWindow(1)
    window.hold(7, "poison")
    assert window.confirm(7) == []
    assert not window.is_open
    assert window.confirm(8) == ["poison"]
    assert window.is_open


def test_what_the_commit_has_not_passed_waits_for_the_next_one() -> None:
    window: FirstWindow[str] = FirstWindow(3)
    window.hold(7, "first")
    window.hold(8, "poison")
    assert window.confirm(8) == ["first"]
    assert not window.is_open
    assert window.held() == [(8, "poison")]


def test_a_commit_of_nothing_held_opens_nothing() -> None:
    window: FirstWindow[str] = FirstWindow(1)
    assert window.confirm(100) == []
    assert not window.is_open


def test_records_of_the_next_owner_are_dropped_and_the_others_kept_in_order() -> None:
    window: FirstWindow[int] = FirstWindow(10)
    for offset in (3, 5, 8, 9):
        window.hold(offset, offset)
    assert window.drop_from(8) == [8, 9]
    assert window.open() == [3, 5]
    assert window.held() == []
