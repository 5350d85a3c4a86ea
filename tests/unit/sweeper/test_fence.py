"""What may go into one batch never adds up to more than its topic takes, and no more is sent early than must be."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from sweeper.fence import BatchRoom
from sweeper.outgoing import Outgoing
from sweeper.targets import record_size
from wait_registry.records.tombstone import Outcome

LIMITS = {"small": 400, "smaller": 250}

letters = st.builds(
    lambda topic, length: Outgoing(topic, None, b"key", bytes(length), [("h", b"v")], "id", 0, Outcome.EXPIRED),
    st.sampled_from(["small", "smaller", "large"]),
    st.integers(0, 120),
)


@given(st.lists(letters, max_size=50))
def test_what_is_queued_for_a_small_topic_fits_into_a_batch(exported: list[Outgoing]) -> None:
    room, queued = BatchRoom(LIMITS), Counter[str]()
    for letter in exported:
        size = record_size(letter.key, letter.value, letter.headers)
        fits = queued[letter.topic] + size <= LIMITS.get(letter.topic, 10**9)
        full = room.is_full(letter)
        assert full is not fits
        if full:
            queued.clear()
        queued[letter.topic] += size


def test_a_record_as_large_as_its_topic_takes_waits_for_nothing() -> None:
    letter = Outgoing("small", None, None, bytes(300), [], "id", 0, Outcome.EXPIRED)
    assert record_size(letter.key, letter.value, letter.headers) > 300
    assert not BatchRoom({"small": 300}).is_full(letter)
