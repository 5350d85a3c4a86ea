"""``--once`` ends when what isn't ours is finished, or held by somebody who is certainly alive."""

from __future__ import annotations

from processor.once import share_of

FIRST, SECOND = ("orders", 0), ("orders", 1)


def test_what_a_member_holds_that_may_be_dead_is_waited_for() -> None:
    share = share_of([SECOND], {FIRST: "own", SECOND: "other"}, "own", alive={"own"})
    assert (share.settled, share.ours, share.left) == (False, {FIRST}, ((SECOND, "other"),))


def test_what_a_member_holds_that_is_alive_is_left_to_it() -> None:
    share = share_of([SECOND], {FIRST: "own", SECOND: "other"}, "own", alive={"other"})
    assert (share.settled, share.left) == (True, ((SECOND, "other"),))


def test_what_is_finished_is_nobodys_concern() -> None:
    assert share_of([], {FIRST: "own", SECOND: "dead"}, "own", alive=set()).settled


def test_what_nobody_holds_yet_is_waited_for() -> None:
    assert not share_of([FIRST], {}, "own", alive={"other"}).settled
