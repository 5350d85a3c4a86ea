"""The proof of a storm: members that come to a group and go again, as a real coordinator has them."""

from __future__ import annotations

from contextlib import closing
from threading import Event

import pytest
from confluent_kafka import Consumer

from tests.chaos.faults.passers import Passers, members_of
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.support.waiting import wait_until


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_one_that_joins_and_leaves_is_counted_and_one_that_stays_is_not(
    topics: Topics, names: Names, protocol: str
) -> None:
    topic, group = topics.create(names("stormy"), 2), names("group")

    def member() -> Consumer:
        made = Consumer({"bootstrap.servers": topics.bootstrap, "group.id": group, "group.protocol": protocol})
        made.subscribe([topic])
        return made

    passers = Passers(members_of(topics.bootstrap, group))
    with closing(member()) as resident:

        def seen(count: int, *others: Consumer) -> bool:
            for one in (resident, *others):
                one.poll(0.1)
            return passers.look() and len(passers._now) == count

        wait_until(lambda: bool(resident.poll(0.1) or resident.assignment()), 60, "a first member")
        wait_until(lambda: seen(1), 60, "a look at it")
        with closing(member()) as visitor:
            # Who closes in the middle of joining doesn't say goodbye.
            wait_until(lambda: seen(2, visitor) and bool(visitor.assignment()), 60, "a second member with its part")
            assert passers.count == 0
        assert passers.look_until(1, 60, Event()) == 1
