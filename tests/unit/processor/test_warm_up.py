"""After an assignment the first records start only when a confirmed commit has passed them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from processor.warm_up import WarmUp

STEPS = st.lists(
    st.one_of(st.tuples(st.just("hold"), st.integers(1, 3)), st.tuples(st.just("confirm"), st.integers(0, 40)))
)


@given(STEPS, st.integers(1, 8))
def test_the_first_records_start_after_a_confirmed_commit(steps: list[tuple[str, int]], size: int) -> None:
    warm_up: WarmUp[int] = WarmUp(size)
    offset, committed = -1, -1
    held: list[int] = []
    released: list[int] = []
    for step, number in steps:
        if step == "hold" and not warm_up.is_over:
            offset += number
            warm_up.hold(offset, offset)
            held.append(offset)
        elif step == "confirm":
            was_open = warm_up.is_over
            committed = max(committed, number)
            now = warm_up.confirm(committed)
            assert not (was_open and now)
            assert all(at < committed for at in now[: size - len(released)]), "the window's records are committed"
            released += now
            assert not [at for at in held if at < committed and at not in released], "none waits longer"
        assert warm_up.is_over == (len(released) >= size)
        assert warm_up.held() == [(at, at) for at in held if at not in released]
    assert released == held[: len(released)], "in order, and each once"
    assert not warm_up.is_over or released == held, "once open, nothing is held back"


def test_records_of_the_next_owner_are_dropped() -> None:
    warm_up: WarmUp[int] = WarmUp(10)
    for offset in (3, 5, 8, 9):
        warm_up.hold(offset, offset)
    assert warm_up.drop_from(8) == [8, 9]
    assert warm_up.end() == [3, 5]
    assert warm_up.held() == []
