"""What may go into one batch never adds up to more than its topic takes, and no more is sent early than must be."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sweeper.fence import batches
from sweeper.outgoing import Outgoing
from sweeper.targets import record_size
from wait_registry.records.tombstone import Outcome

LIMITS = {"small": 400, "smaller": 250}

letters = st.builds(
    lambda topic, length: Outgoing(topic, None, b"key", bytes(length), [("h", b"v")], "id", 0, Outcome.EXPIRED),
    st.sampled_from(["small", "smaller", "large"]),
    st.integers(0, 120),
)


def sizes(batch: list[Outgoing]) -> Counter[str]:
    """Return the bytes of a batch by topic."""
    counted = Counter[str]()
    for letter in batch:
        counted[letter.topic] += record_size(letter.key, letter.value, letter.headers)
    return counted


@given(st.lists(letters, max_size=50))
def test_batches_fit_into_small_topics_and_end_only_when_full(exported: list[Outgoing]) -> None:
    split = list(batches(exported, LIMITS))
    assert [letter for batch in split for letter in batch] == exported
    assert [batch for batch in split if any(sizes(batch)[topic] > limit for topic, limit in LIMITS.items())] == []
    for batch, following in pairwise(split):
        topic = following[0].topic
        assert sizes([*batch, following[0]])[topic] > LIMITS[topic]


def test_a_record_as_large_as_its_topic_takes_waits_for_nothing() -> None:
    letter = Outgoing("small", None, None, bytes(300), [], "id", 0, Outcome.EXPIRED)
    assert record_size(letter.key, letter.value, letter.headers) > 300
    assert list(batches([letter], {"small": 300})) == [[letter]]
