"""What may go into one batch of a transaction."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from wait_registry.kafka.fenced_producer import ToSend, batches
from wait_registry.kafka.targets import record_size

LIMITS = {"small": 400, "smaller": 250}

letters = st.builds(
    lambda topic, length: ToSend(topic, None, b"key", bytes(length), [("h", b"v")]),
    st.sampled_from(["small", "smaller", "large"]),
    st.integers(0, 120),
)


def sizes(batch: list[ToSend]) -> Counter[str]:
    """Return the bytes of a batch by topic."""
    counted = Counter[str]()
    for letter in batch:
        counted[letter.topic] += record_size(letter.key, letter.value, letter.headers)
    return counted


@given(st.lists(letters, max_size=50))
def test_batches_fit_into_small_topics_and_end_only_when_full(exported: list[ToSend]) -> None:
    split = list(batches(exported, LIMITS))
    assert [letter for batch in split for letter in batch] == exported
    assert [batch for batch in split if any(sizes(batch)[topic] > limit for topic, limit in LIMITS.items())] == []
    for batch, following in pairwise(split):
        topic = following[0].topic
        assert sizes([*batch, following[0]])[topic] > LIMITS[topic]


def test_a_record_as_large_as_its_topic_takes_waits_for_nothing() -> None:
    letter = ToSend("small", None, None, bytes(300), [])
    assert record_size(letter.key, letter.value, letter.headers) > 300
    assert list(batches([letter], {"small": 300})) == [[letter]]
