"""A route with a bulkhead takes no more worker slots than its own, and others overtake its records."""

from __future__ import annotations

import pytest

from processor.dispatch.bulkheads import Bulkheads, BulkheadScheduler
from processor.dispatch.scheduler import Ordered, partition_lane
from tests.unit.processor.engine_bench import play, stories
from tests.unit.processor.parts import entries

# The route of a record is the remainder of its offset by two.
TWO_OF_FOUR = {"mode": "off", "slots": 4, "bulkheads": {0: 2}}


@pytest.mark.guarantee("P7.19")
@stories(
    """
    records behind overtake those of a full route
      poll 0 1 2 3 4 5 6 > start 0 1 2 3 | done 1 > start 5 | done 3 | waiting? > 2 | done 0 > start 4 |
      done 2 > start 6
    a full route leaves slots to others
      poll 0 2 4 6 > start 0 2 | waiting? > 2 | poll 7 9 11 > start 7 9 | done 7 > start 11
    calls that fail or are cancelled give their slots back
      poll 0 2 4 6 > start 0 2 | failed 0 > dead letter 0; start 4 | cancelled 2 > start 6
    records of a full route take no room from others
      poll 0 2 4 6 8 10 12 14 > start 0 2 | room? > 6 | poll 15 > start 15
    records of a partition that is lost give nothing back
      poll 0 2 4 > start 0 2 | lost > cancel 0 2 | waiting? > 0 | assigned > resume a | poll 6 8 | cancelled 0 > start 6
    """
)
def test_a_route_with_a_bulkhead(story: str) -> None:
    play(story, **TWO_OF_FOUR)


@pytest.mark.guarantee("P7.19")
@stories(
    """
    records of retry topics share it
      later 99 | assigned b > resume b | poll 0 2 > start 0 2 | poll b4 b5 > start b5 | poll 4 | done 0 > start b4 |
      done 2 > start 4
    """
)
def test_records_of_retry_topics_have_the_bulkhead_of_their_route(story: str) -> None:
    play(story, **TWO_OF_FOUR, delay=1, retries=True)


@pytest.mark.guarantee("P7.19")
@stories(
    """
    a record that is registered again while it waits gives no slot back
      poll 0 2 4 > register 0 2 4 | registered 0 2 4 > start 0 2 | after 41 > register 4; commit 5 |
      done 0 > tombstone 0 | registered 4 > start 4
    """
)
def test_a_record_that_waits_for_long_is_registered_again(story: str) -> None:
    play(story, slots=4, bulkheads={0: 2})


@pytest.mark.guarantee("P7.19", "O1.1")
def test_a_record_of_a_full_route_keeps_its_place_in_the_order() -> None:
    first, other, second = entries(0, 1, 2)
    ordered = Ordered(partition_lane)
    scheduler = BulkheadScheduler(ordered, Bulkheads(lambda entry: entry.offset % 2, {0: 0}))
    scheduler.enter([first, other, second])
    scheduler.add([first, other, second])
    assert scheduler.take(3) == []
    assert scheduler.behind_of(first.partition.place) == len(scheduler) == 3
    scheduler.remove(lambda entry: entry is first)
    scheduler.leave([first])
    assert scheduler.take(3) == [other]
