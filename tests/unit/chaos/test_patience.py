"""A run has settled late, or never: what changes is waited for, what hangs or goes round is not."""

from __future__ import annotations

from tests.chaos.patience import Patience


def given_up_after(patience: Patience, seen: list[str]) -> int | None:
    """Return after how many seconds it is over, with one look a second."""
    return next((second for second, words in enumerate(seen) if patience.over(1000.0 + second, words)), None)


def test_what_becomes_less_is_waited_for_although_it_takes_longer_than_what_hangs_may() -> None:
    assert given_up_after(Patience(10, 100), [f"{90 - second} behind" for second in range(90)]) is None


def test_what_hangs_is_given_up_counted_from_its_last_change() -> None:
    assert given_up_after(Patience(10, 100), ["1 record isn't consumed"] * 50) == 10
    assert given_up_after(Patience(10, 100), ["a"] * 7 + ["b"] * 50) == 17


def test_what_goes_round_is_given_up_at_last() -> None:
    assert given_up_after(Patience(10, 60), ["a", "b"] * 50) == 60
