"""When an alert fires and ends, and that its receiver learns both, whatever fails in between."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweeper.alerts.state import Alert, Phase
from wait_registry.settings.alerts import AlertRule


def rule(above: int = 10, below: int | None = None, hold: str | None = None, every: str = "1h") -> AlertRule:
    return AlertRule.model_validate(
        {"name": "x", "above": above, "below": below, "every": every, **({"for": hold} if hold else {})}
    )


RULES = st.builds(
    rule,
    st.integers(0, 5),
    st.none() | st.just(1),
    st.none() | st.sampled_from(["2s", "5s"]),
    st.sampled_from(["3s", "1h"]),
)


class Step(NamedTuple):
    """One evaluation: how long after the last, with how many dead letters, and whether the receiver answers."""

    after_s: int
    dead_letters: int
    answers: bool


# No two evaluations are at one moment: an alert that begins again has another beginning.
STEPS = st.lists(st.builds(Step, st.integers(1, 4), st.integers(0, 7), st.booleans()), max_size=30)


class Received(NamedTuple):
    """What a receiver has taken, and when: since when the alert fires, or fired."""

    at_s: float
    began_s: float
    fires: bool


def played(of: AlertRule, steps: Sequence[Step]) -> tuple[list[tuple[float, int, Alert]], list[Received]]:
    """Return the states after all evaluations, with their times and counts, and what the receiver took."""
    alert, now_s = Alert(), 1_000.0
    states: list[tuple[float, int, Alert]] = []
    received: list[Received] = []
    for step in steps:
        now_s += step.after_s
        alert = alert.observed(of, step.dead_letters, now_s)
        message = alert.due(of, now_s)
        if message is not None and step.answers:
            received.append(Received(now_s, message.began_s, message.ended_s is None))
            alert = alert.delivered(message, now_s)
        states.append((now_s, step.dead_letters, alert))
    return states, received


@given(RULES, STEPS)
def test_it_fires_when_there_have_been_too_many_for_long_enough(of: AlertRule, steps: Sequence[Step]) -> None:
    below = of.above + 1 if of.below is None else of.below
    fires, too_many_since = False, None
    for now_s, count, alert in played(of, steps)[0]:
        if fires:
            fires = count >= below
            too_many_since = None
        elif count > of.above:
            too_many_since = now_s if too_many_since is None else too_many_since
            fires = now_s - too_many_since >= of.hold_s
        else:
            too_many_since = None
        assert (alert.phase is Phase.FIRING) == fires
        assert (alert.phase is Phase.PENDING) == (not fires and too_many_since is not None)


@given(RULES, STEPS)
def test_a_receiver_that_answers_again_knows_the_last_state(of: AlertRule, steps: Sequence[Step]) -> None:
    states, received = played(of, [*steps, *steps[-1:], *(one._replace(answers=True) for one in steps[-1:])])
    if states:
        last = states[-1][2]
        assert last.due(of, states[-1][0]) is None
        assert (bool(received) and received[-1].fires) == (last.phase is Phase.FIRING)


@given(RULES, STEPS)
def test_each_alert_that_ends_is_reported_as_such_once(of: AlertRule, steps: Sequence[Step]) -> None:
    received = played(of, [one._replace(answers=True) for one in steps])[1]
    ends = [number for number, one in enumerate(received) if not one.fires]
    assert all(number > 0 and received[number - 1].fires for number in ends)


@given(RULES, STEPS)
def test_an_alert_that_continues_is_repeated_only_after_every(of: AlertRule, steps: Sequence[Step]) -> None:
    for first, second in pairwise(played(of, steps)[1]):
        if first.fires and second.fires and first.began_s == second.began_s:
            assert second.at_s - first.at_s >= of.every_s


def test_what_fired_while_the_receiver_was_away_is_reported_with_both_times() -> None:
    of = rule()
    alert = Alert().observed(of, 11, 100.0).observed(of, 0, 160.0).observed(of, 0, 900.0)
    message = alert.due(of, 900.0)
    assert message is not None and (message.began_s, message.ended_s) == (100.0, 160.0)
    assert alert.delivered(message, 900.0).due(of, 5_000.0) is None


def test_a_new_start_is_not_hidden_by_an_end_that_was_not_delivered() -> None:
    of = rule(hold="1m")
    alert = Alert().observed(of, 11, 0.0).observed(of, 11, 60.0).observed(of, 0, 90.0)
    pending = alert.observed(of, 11, 120.0)
    ended = pending.due(of, 120.0)
    assert ended is not None and ended.ended_s == 90.0
    firing = pending.observed(of, 12, 180.0).due(of, 180.0)
    assert firing is not None and (firing.began_s, firing.ended_s, firing.dead_letters) == (120.0, None, 12)


@pytest.mark.parametrize("hold", [None, "1m"])
def test_a_clock_that_is_set_back_delays_nothing_for_long(hold: str | None) -> None:
    of = rule(hold=hold, every="5m")
    alert = Alert().observed(of, 11, 10_000.0).observed(of, 11, 5_000.0).observed(of, 11, 5_060.0)
    alert = alert.observed(of, 11, 5_120.0)
    message = alert.due(of, 5_120.0)
    assert message is not None and message.began_s <= 5_120.0
    sent = alert.delivered(message, 5_120.0)
    assert sent.due(of, 5_419.0) is None
    assert sent.due(of, 5_420.0) is not None
    assert sent.due(of, 100.0) is not None
