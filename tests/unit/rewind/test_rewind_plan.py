"""What `waitreg rewind` means by its options, and that the metadata of a move covers every registration."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from processor.protocol.events import Assigned
from processor.protocol.partition import Partition
from processor.protocol.registering import Rules
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import MAX_RECORDED, CommitMetadata, decode_metadata
from wait_registry.kafka.offset_ranges import parse_ranges, ranges_text
from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings.processor import ProcessorSettings
from waitreg.rewind.plan import Move, Position, plan
from waitreg.rewind.report import report
from waitreg.rewind.targets import Landing, Target, chosen_topics, parse_time

PLACE = ("orders", 3)
WAIT_TOPIC = TopicIdentity("waitreg.wait", "h-_4", 8)
OFF, EAGER, DEFERRED = RegistrationMode.OFF, RegistrationMode.EAGER, RegistrationMode.DEFERRED


def metadata(mode: str | None = EAGER, bound: int | None = 100) -> CommitMetadata:
    return CommitMetadata(WAIT_TOPIC, "x", mode, bound)


def position(committed: int | None = 500, recorded: CommitMetadata | None = None, **other: object) -> Position:
    given = {"first": 200, "end": 1000, **other}
    return Position(committed=committed, metadata=recorded or metadata(), **given)  # type: ignore[arg-type]


def test_a_move_back_counts_what_is_handled_again() -> None:
    move = plan(PLACE, position(), 300)
    assert (move.again, move.skipped, move.deleted) == (200, range(300, 300), 0)


def test_an_offset_behind_the_end_of_the_log_adds_no_records() -> None:
    move = plan(PLACE, position(committed=5000), 900)
    assert (move.again, move.metadata.uncommitted_max) == (100, 100 + 4100)


def test_a_move_forward_names_the_range_that_is_skipped() -> None:
    move = plan(PLACE, position(), 900)
    assert (move.again, move.skipped, move.deleted) == (0, range(500, 900), 0)


def test_skipped_offsets_that_the_log_no_longer_has_are_no_range_to_replay() -> None:
    move = plan(PLACE, position(committed=150), 260)
    assert (move.skipped, move.deleted) == (range(200, 260), 50)


def test_a_group_without_an_offset_would_begin_at_the_first() -> None:
    move = plan(PLACE, position(committed=None), 1000)
    assert (move.committed, move.again, move.skipped) == (None, 0, range(200, 1000))
    assert plan(PLACE, position(committed=None), 200).changes


def test_a_partition_that_is_there_already_is_left_alone() -> None:
    assert not plan(PLACE, position(), 500).changes


@pytest.mark.parametrize("target", [199, 1001])
def test_an_offset_outside_the_log_is_refused(target: int) -> None:
    with pytest.raises(ConfigurationError, match=r"isn't in orders\[3\], whose log begins at 200 and ends at 1000"):
        plan(PLACE, position(), target)


@pytest.mark.parametrize(
    ("committed", "before", "target", "bound"),
    [
        pytest.param(500, 100, 300, 300, id="back: as many more as come in again"),
        pytest.param(500, 100, 900, 100, id="forward: the same"),
        pytest.param(500, None, 300, None, id="unknown stays unknown"),
        pytest.param(None, 100, 300, None, id="no offset to count from"),
        pytest.param(500, MAX_RECORDED, 300, None, id="more than a reader takes"),
    ],
)
def test_the_number_grows_by_a_move(committed: int | None, before: int | None, target: int, bound: int | None) -> None:
    moved = plan(PLACE, position(committed, metadata(bound=before)), target).metadata
    assert moved == metadata(bound=bound)
    assert decode_metadata(moved.encode(target), target) == moved


@pytest.mark.parametrize(
    ("mode", "target", "expected"),
    [
        pytest.param(EAGER, 300, EAGER, id="a mode with a warm-up stays"),
        pytest.param(OFF, 300, DEFERRED, id="off, back"),
        pytest.param(OFF, 900, OFF, id="off, forward: the last commit says so"),
        pytest.param(None, 900, DEFERRED, id="unknown, forward"),
    ],
)
def test_off_gets_a_warm_up_if_records_may_be_registered(mode: str | None, target: int, expected: str | None) -> None:
    assert plan(PLACE, position(recorded=metadata(mode)), target).metadata.registration == expected


MODES = st.sampled_from([EAGER, DEFERRED, OFF])


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[int], Position, set[int]]:
    """Draw a log with gaps, a group's position in it, and which records the group has registered.

    At or after the committed offset, these are among as many as the commit says, and none if it says `off`. Before it,
    they may be any.
    """
    offsets = sorted(draw(st.sets(st.integers(0, 60), min_size=1, max_size=30)))
    committed = draw(st.integers(0, 61))
    bound = draw(st.none() | st.integers(0, 10))
    mode = draw(st.none() | MODES)
    ahead = [] if mode == OFF else [offset for offset in offsets if offset >= committed][:bound]
    possible = [offset for offset in offsets if offset < committed] + ahead
    registered = draw(st.sets(st.sampled_from(possible))) if possible else set()
    return offsets, Position(0, 61, committed, metadata(mode, bound)), registered


def not_in_the_warm_up(move: Move, mode: RegistrationMode, own: int, offsets: list[int], end: int) -> list[int]:
    """Return the polled offsets that a processor doesn't register at once after this move."""
    recorded = decode_metadata(move.metadata.encode(move.target), move.target)
    assert recorded is not None
    assigned = Assigned(PLACE, move.target, recorded.uncommitted_max, recorded.registration, end, 0, False)
    partition = Partition(PLACE, move.target, Rules(mode, 0.5, own, 0.5, 60.0, 20.0).warm_up(assigned))
    polled = [offset for offset in offsets if offset >= move.target]
    partition.add(array("q", polled))
    return [offset for number, offset in enumerate(polled) if not partition.in_warm_up(number, offset)]


@pytest.mark.guarantee("P1.31")
@given(logs(), st.integers(0, 61), MODES, st.integers(1, 10))
def test_every_registered_record_that_comes_in_again_is_in_the_warm_up(
    log: tuple[list[int], Position, set[int]], target: int, mode: RegistrationMode, own: int
) -> None:
    offsets, before, registered = log
    cold = not_in_the_warm_up(plan(PLACE, before, target), mode, own, offsets, before.end)
    assert registered.isdisjoint(cold)


@pytest.mark.guarantee("P1.31")
@given(logs(), st.lists(st.integers(0, 61), min_size=2, max_size=4), MODES)
def test_the_same_holds_after_several_moves(
    log: tuple[list[int], Position, set[int]], targets: list[int], mode: RegistrationMode
) -> None:
    offsets, before, registered = log
    for target in targets:
        move = plan(PLACE, before, target)
        before = replace(before, committed=target, metadata=move.metadata)
    assert registered.isdisjoint(not_in_the_warm_up(move, mode, 1, offsets, before.end))


@given(logs(), st.integers(0, 61), MODES)
def test_the_warm_up_ends_where_no_record_can_be_registered(
    log: tuple[list[int], Position, set[int]], target: int, mode: RegistrationMode
) -> None:
    offsets, before, _ = log
    bound = before.metadata.uncommitted_max
    assume(bound is not None)
    cold = not_in_the_warm_up(plan(PLACE, before, target), mode, 1, offsets, before.end)
    beyond = [offset for offset in offsets if offset >= max(before.start, target)]
    limit = max(1, bound or 0) + max(0, before.start - target)
    assert set(beyond[limit:]) <= set(cold)


def test_the_record_that_decides_is_named_with_a_warning_if_it_is_far_from_the_time() -> None:
    asked_ms, year_2099_ms, micros = 1_700_000_000_000, 4_070_908_800_000, 1_700_000_000_000_000
    landings = {
        ("a", 0): Landing(7, asked_ms + 500), ("a", 1): Landing(10, year_2099_ms), ("a", 2): Landing(0, micros),
        ("a", 3): Landing(9),
    }  # fmt: skip
    lines = [line for line in report([], asked_ms, landings) if line.startswith("a[")]
    assert lines[0] == "a[0]: the record at 7 decides, of 2023-11-14T22:13:20.500Z."
    assert lines[1].startswith("a[1]: the record at 10 decides, of 2099-01-01T00:00:00.000Z. That is long after")
    assert lines[2].startswith("a[2]: the record at 0 decides, of 1700000000000000 ms since 1970. That is long after")
    assert lines[3] == "a[3]: no record has this time or a later one, so it goes to the end."


SHOP = ProcessorSettings(group="shop", topics=("orders", "refunds"))


@pytest.mark.parametrize("given", [{}, {"time_ms": 0, "offset": 0}, {"latest": True, "earliest": True}])
def test_exactly_one_target_is_taken(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="give one of --to-time, --to-offset, --to-latest and --to-earliest"):
        Target(**given)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-02", 86_400_000),
    ],
)
def test_a_time_without_an_offset_is_utc(text: str, time_ms: int) -> None:
    assert parse_time(text) == time_ms


def test_text_that_is_no_time_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'yesterday' is no ISO 8601 time"):
        parse_time("yesterday")


def test_without_a_topic_all_inputs_are_meant() -> None:
    assert chosen_topics(SHOP, (), ()) == ["orders", "refunds"]
    assert chosen_topics(SHOP, ("refunds",), (0, 3)) == ["refunds"]


@pytest.mark.parametrize("topic", ["orders.shop.retry.10s", "refunds.shop.redeliver"])
def test_own_topics_are_moved_to_their_beginnings_alone(topic: str) -> None:
    assert chosen_topics(SHOP, (topic,), (), earliest=True) == [topic]
    with pytest.raises(ConfigurationError, match="--to-earliest alone"):
        chosen_topics(SHOP, (topic,), ())


@pytest.mark.parametrize(
    ("processor", "topics", "partitions", "said"),
    [
        (SHOP, ("orders.other.retry.10s",), (), "isn't in processor.topics"),
        (SHOP, (), (1,), "--partition needs one topic, and there are 2"),
        (ProcessorSettings(), (), (), r"processor\.group and processor\.topics aren't set"),
    ],
)
def test_other_topics_and_partitions_of_several_are_refused(
    processor: ProcessorSettings, topics: tuple[str, ...], partitions: tuple[int, ...], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        chosen_topics(processor, topics, partitions)


PLACES = st.tuples(st.from_regex(r"[a-zA-Z0-9_-]{1,249}", fullmatch=True), st.integers(0, 999_999_999))
RANGES = st.tuples(st.integers(0, 10**15), st.integers(1, 10**15)).map(lambda pair: range(pair[0], sum(pair)))


@given(st.dictionaries(PLACES, RANGES, min_size=1, max_size=5))
def test_what_is_printed_can_be_typed(ranges: dict[tuple[str, int], range]) -> None:
    assert parse_ranges(ranges_text(ranges).split(" ")) == ranges


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["orders:3:100"], "no TOPIC:PARTITION:START-END, e.g. orders:3:100-250"),
        (["orders:3:250-100"], "is empty: END is the offset after the last record"),
        (["orders:3:100-100"], "is empty"),
        (["orders:three:1-2"], "no TOPIC:PARTITION:START-END"),
        (["or ders:3:1-2"], "no TOPIC:PARTITION:START-END"),
        (["orders:3:-5-2"], "no TOPIC:PARTITION:START-END"),
        (["orders:3:1-2", "orders:3:5-6"], r"orders\[3\] has two ranges"),
    ],
)
def test_a_range_that_means_nothing_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        parse_ranges(texts)
