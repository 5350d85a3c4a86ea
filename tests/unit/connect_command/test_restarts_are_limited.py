"""Restarts: at once, with growing pauses, and in no window more than the limit, whatever fails when."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from waitreg.connect.restarts import RestartRules, Restarts

RULES = RestartRules(5, 60, 10, 1800)


def played(rules: RestartRules, looks: list[tuple[float, bool]]) -> list[float]:
    """Return when it was restarted, of looks (pause before it in s, whether it has failed)."""
    restarts, now, times = Restarts(rules), 1000.0, []
    for pause_s, failed in looks:
        now += pause_s
        if failed and restarts.due(now):
            restarts.note(now)
            times.append(now)
    return times


def test_the_first_failure_is_answered_at_once() -> None:
    assert Restarts(RULES).due(0.0)


def test_pauses_grow_to_the_longest_and_then_to_what_the_limit_allows() -> None:
    times = played(RULES, [(1.0, True)] * 2000)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert pauses[:9] == [5, 10, 20, 40, 60, 60, 60, 60, 60]
    assert set(pauses[9:]) == {180}


def test_while_it_fails_the_limit_stays_reached_and_once_it_runs_it_falls() -> None:
    restarts, now = Restarts(RULES), 0.0
    while not restarts.limit_reached(now):
        if restarts.due(now):
            restarts.note(now)
        now += 1
    for _ in range(4000):
        now += 1
        if restarts.due(now):
            restarts.note(now)
        assert restarts.limit_reached(now)
    assert not restarts.limit_reached(now + 2 * RULES.apart_s), "it has run for longer than restarts are apart"
    assert restarts.due(now + RULES.window_s)


rules = st.builds(
    lambda first, longest_share, limit, window: RestartRules(
        min(first, window / limit * longest_share), window / limit * longest_share, limit, window
    ),
    st.floats(0.1, 30),
    st.floats(0.1, 1),
    st.integers(1, 12),
    st.floats(60, 3600),
)


@given(rules, st.lists(st.tuples(st.floats(0, 300), st.booleans()), max_size=200))
def test_no_window_sees_more_than_the_limit_and_one(rules: RestartRules, looks: list[tuple[float, bool]]) -> None:
    # One more: a restart at each end of a window.
    times = played(rules, looks)
    for start in times:
        assert sum(start <= time < start + rules.window_s * 0.999 for time in times) <= rules.limit + 1
