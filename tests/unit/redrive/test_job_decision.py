"""Each dead letter comes into one category, and only what somebody allowed is redriven all the same."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from tests.support.golden_vectors import golden_vectors
from tests.support.jobs import requested
from wait_registry.errors import DataError, TransientError
from wait_registry.kafka.fenced_producer import ToSend
from wait_registry.kafka.targets import Target
from wait_registry.records.lineage import Lineage, split_lineage
from wait_registry.records.operation import (
    Advanced,
    Approved,
    Changed,
    DeletionRequested,
    Event,
    Kind,
    Mark,
    Place,
    RateChanged,
    RecordsDeleted,
    Requested,
    Revealed,
    State,
    decode_event,
    encode_event,
)
from wait_registry.records.topics import is_topic_name
from waitreg.redrive.job_decision import (
    ALLOWABLE,
    DONE,
    MEANINGS,
    Candidate,
    Category,
    Contents,
    Standing,
    is_marked,
    obstacle,
)
from waitreg.redrive.operations_tail import OperationsTail
from waitreg.redrive.progress import Progress
from waitreg.redrive.target import ORIGIN, REDELIVERY, Route

RECORD = Place("orders", 0, 7)
LETTER = Place("orders.dlq", 0, 1)
ID = "018bcfe5-6800-8000-8000-000000000001"


def candidate(**changes: Any) -> Candidate:
    plain = Candidate(LETTER, LETTER, "failed", ID, "shop", RECORD, False, False, False, False, 10, (), Standing())
    return plain._replace(**changes)


def judged(kind: Kind = Kind.REDRIVE, standing: Standing | None = None, allowed: Any = (), **changes: Any) -> Any:
    job = requested("shop", kind=kind, job="job-2", allowed=tuple(allowed))
    return obstacle(candidate(**changes), standing or Standing(), job, 3)


@pytest.mark.guarantee("R1.6")
@pytest.mark.parametrize(
    ("changes", "standing", "category"),
    [
        ({"wait_id": None}, Standing(), Category.FOREIGN),
        ({"group": None}, Standing(), Category.FOREIGN),
        ({}, Standing("redriven", "job-2", 1, 1), Category.SAME_DELIVERY),
        ({}, Standing("archived", "job-1"), Category.ALREADY_ARCHIVED),
        ({}, Standing("redriven", "job-1", 1, 1), Category.ALREADY_REDRIVEN),
        ({"conflicting": True}, Standing(), Category.CONFLICT),
        ({"finished_late": True, "reason": "expired"}, Standing(), Category.FINISHED_LATE),
        ({"failed": True, "reason": "expired"}, Standing(), None),
        ({"waiting": True}, Standing(), Category.STILL_WAITING),
        ({"reason": "expired"}, Standing(), Category.MAY_BE_DONE),
        ({}, Standing("open", "job-1", 0, 3), Category.MAX_REDRIVES),
        ({}, Standing(), None),
    ],
)
def test_a_redrive_leaves_alone_what_it_must(changes: Any, standing: Standing, category: Category | None) -> None:
    assert judged(standing=standing, **changes) is category
    if category in ALLOWABLE:
        assert judged(standing=standing, allowed=(category,), **changes) is None
    else:
        assert judged(standing=standing, allowed=tuple(Category), **changes) is category


@pytest.mark.parametrize(
    ("kind", "standing", "category"),
    [
        (Kind.ARCHIVE, Standing(), None),
        (Kind.ARCHIVE, Standing("archived", "job-1"), Category.ALREADY_ARCHIVED),
        (Kind.ARCHIVE, Standing("redriven", "job-1"), Category.ALREADY_REDRIVEN),
        (Kind.RESTORE, Standing("archived", "job-1"), None),
        (Kind.RESTORE, Standing(), Category.NOT_ARCHIVED),
        (Kind.RESTORE, Standing("redriven", "job-1"), Category.NOT_ARCHIVED),
    ],
)
def test_archive_and_restore_are_each_others_inverse(kind: Kind, standing: Standing, category: Category | None) -> None:
    assert judged(kind, standing, waiting=True, reason="expired") is category
    assert is_marked(standing.state, requested("shop", kind=kind)) is (category is None)


def test_each_category_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Category)
    assert set(DONE) == set(Kind)


def mark(kind: Kind, job: str = "job-1", **changes: Any) -> Mark:
    given = {"wait_id": ID, "record": RECORD, "dead_letters": (LETTER,)} | changes
    return Mark(job=job, kind=kind, group="shop", by="anna", **given)


def test_the_tail_counts_on_from_what_the_tables_show() -> None:
    tail = OperationsTail(10, "job-2", 100)
    shown = Standing("open", None, 1, 1)
    assert tail.standing(LETTER, ID, RECORD, shown) == shown
    tail.add(mark(Kind.REDRIVE), 10)
    tail.add(mark(Kind.REDRIVE, "job-3", wait_id="another delivery"), 10)
    assert tail.standing(LETTER, ID, RECORD, shown) == Standing("redriven", "job-1", 2, 3)
    tail.add(mark(Kind.ARCHIVE), 10)
    tail.add(mark(Kind.RESTORE, "job-4"), 10)
    assert tail.standing(LETTER, ID, RECORD, shown) == Standing("open", "job-4", 2, 3)
    assert tail.standing(LETTER, ID, RECORD, shown, 1_800_000_000_000).of_record == 1, "its input was recreated"


def test_a_later_dead_letter_of_a_redriven_delivery_is_open_and_redriven_only_on_request() -> None:
    tail, later = OperationsTail(10, "job-2", 100), LETTER._replace(offset=2)
    tail.add(mark(Kind.REDRIVE), 10)
    standing = tail.standing(later, ID, RECORD, Standing())
    assert standing == Standing("open", None, 1, 1)
    assert judged(Kind.REDRIVE, standing) is Category.ALREADY_REDRIVEN
    assert judged(Kind.REDRIVE, standing, allowed=(Category.ALREADY_REDRIVEN,)) is None
    assert judged(Kind.ARCHIVE, standing) is None
    tail.add(mark(Kind.ARCHIVE, dead_letters=(LETTER, later)), 10)
    assert tail.standing(later, ID, RECORD, Standing()).state == "archived"


# The topic in a mark, that of a dead letter at the same place, and the state of the dead letter.
COVERED = [
    *(("dlq@old", "dlq@new", "open"), ("dlq", "dlq2", "open"), ("d.q@old", "dlq", "open")),
    *(("dlq@o-_", "dlq@o-_", "archived"), ("dlq", "dlq@new", "archived"), ("dlq@old", "dlq", "archived")),
]


@pytest.mark.parametrize(("of_mark", "of_letter", "state"), COVERED)
def test_a_mark_is_not_of_a_dead_letter_in_another_topic_of_that_name(of_mark: str, of_letter: str, state: str) -> None:
    tail = OperationsTail(10, "job-2", 100)
    tail.add(mark(Kind.ARCHIVE, dead_letters=(Place(of_mark, 0, 1),)), 10)
    assert tail.standing(Place(of_letter, 0, 1), ID, RECORD, Standing()).state == state


def test_the_tail_knows_how_far_its_own_job_is() -> None:
    tail, job = OperationsTail(10, "job-2", 100), requested("shop", job="job-2", approval=True)
    events: list[Event] = [
        job,
        Advanced(job="job-1", cursor=("a", 0, 1), counts={"redriven": 9}),
        Approved(job="job-2", by="ben", authenticated=True, via="console"),
        mark(Kind.REDRIVE, "job-2"),
        Changed(job="job-2", state=State.PAUSED, by="anna"),
        Changed(job="job-2", state=State.RUNNING, by="anna"),
        mark(Kind.REDRIVE, "job-2"),
        mark(Kind.REDRIVE, "job-1"),
        Advanced(job="job-2", cursor=("a", 0, 1), counts={"redriven": 1}),
        RateChanged(job="job-2", by="ben", authenticated=True, via="console", rate=7.0),
        Changed(job="job-1", state=State.CANCELLED, by="ben"),
    ]
    for offset, event in enumerate(events, 10):
        tail.add(event, offset)
    counts = Counter({"redriven": 1})
    assert tail.progress == Progress(job, State.RUNNING, ("a", 0, 1), counts, "ben", 7.0, counted_from=15, sent=1)


def test_a_tail_that_is_too_long_waits_for_the_sink() -> None:
    tail = OperationsTail(10, "job-2", 1)
    tail.add(mark(Kind.REDRIVE), 10)
    with pytest.raises(TransientError, match="max_tail_records"):
        tail.add(mark(Kind.REDRIVE), 10)


COUNTED = {"ends", "orders.dlq", "expected", "counts", "before", "first", "failed"}


def spoiled(value: Any, name: str = "") -> Iterator[Any]:
    """Yield JSON in which one text, or one key that isn't a field's name, has NUL, or one number is too large."""
    if isinstance(value, str):
        yield f"{value}\0"
    elif not isinstance(value, bool | dict | list | None):
        yield from (2**63, -(2**63) - 1) if isinstance(value, int) else (math.inf, math.nan)
    elif isinstance(value, list):
        for at, one in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in spoiled(one))
    elif isinstance(value, dict):
        for key in value.keys() - {"version"}:
            yield from ({**value, key: other} for other in spoiled(value[key], key))
            if name in COUNTED:
                yield {**value, str(2**31) if key.isdigit() else f"{key}\0": value[key]}


def test_an_event_that_no_table_can_hold_is_neither_read_nor_written() -> None:
    events = [vector.input for vector in golden_vectors("operation") if vector.operation == "encode"]
    for changed in (each for event in events for each in spoiled(event)):
        with pytest.raises(DataError, match="no record of the operations topic"):
            decode_event(json.dumps(changed).encode())
    with pytest.raises(DataError, match=r"no record of the operations topic: changed\.reason"):
        encode_event(Changed(job="j", state=State.PAUSED, by="a").model_copy(update={"reason": "\0"}))


text = partial(st.text, st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
places = st.builds(Place, text(min_size=1, max_size=9), st.integers(0, 9), st.integers(0, 2**62))
offsets = st.dictionaries(st.integers(0, 9), st.integers(0, 2**62))
JOB: dict[str, Any] = {"job": st.just("j")}
ASKED: dict[str, Any] = {"by": text(), "authenticated": st.booleans(), "via": text()}
REASON: dict[str, Any] = {"reason": text(min_size=1)}
MARK: dict[str, Any] = {"wait_id": text(min_size=1), "dead_letters": st.tuples(places), "record": st.none() | places}
events = st.one_of(
    st.builds(Advanced, **JOB, cursor=st.tuples(text(), st.integers(0, 2**63 - 1)), counts=st.just({"redriven": 1})),
    st.builds(Changed, **JOB, state=st.sampled_from(State), by=text(), reason=text()),
    st.builds(Approved, **JOB, **ASKED, reason=text()),
    st.builds(RateChanged, **JOB, **ASKED, rate=st.floats(0.1, 100)),
    st.builds(Revealed, **ASKED, **REASON, place=places, group=st.none() | text()),
    st.builds(DeletionRequested, **JOB, **ASKED, **REASON, topic=text(), before=offsets),
    st.builds(
        RecordsDeleted,
        **{**JOB, **ASKED, "topic": text(), "first": offsets},
        failed=st.dictionaries(st.integers(0, 9), text()),
    ),
    st.builds(
        Mark, **{**JOB, **MARK, "kind": st.sampled_from(Kind), "group": text(), "by": text()}, target=st.none() | places
    ),
    st.builds(
        Requested,
        **{**JOB, **ASKED, "kind": st.sampled_from(Kind), "group": text(), "reason": text()},
        conditions=st.tuples(text()),
        ends=st.just({"orders.dlq": {0: 17}}),
        rate=st.floats(0.1, 100),
    ),
)


@given(events)
def test_an_event_is_read_as_it_was_written(event: Any) -> None:
    assert decode_event(encode_event(event)) == event


def test_a_tail_with_a_record_that_cannot_be_read_waits_for_the_sink() -> None:
    unreadable = Message(topic="waitreg.operations", partition=0, offset=17, value=b"{}")
    with pytest.raises(TransientError, match=r"waitreg\.operations:0:17: no record .* the sink has passed it over"):
        OperationsTail(10, "job-2", 1).take(unreadable)


@pytest.mark.parametrize("value", [None, b"", b"{}", b"\xff", b'{"event":"mark"}', b'{"event":"secret"}'])
def test_what_is_no_event_is_named_without_being_quoted(value: bytes | None) -> None:
    with pytest.raises(DataError, match="no record of the operations topic") as raised:
        decode_event(value)
    assert "secret" not in str(raised.value)


def looked_up(topic: str) -> Target:
    known = Target(topic, 1, 1000, compacted=topic.startswith("states"))
    return known if is_topic_name(topic) else Target(topic, 0, 0, "not a topic name")


@pytest.mark.parametrize(
    ("group", "to", "record", "category"),
    [
        ("data/serving", REDELIVERY, Place("orders", 0, 7), Category.TARGET_UNNAMED),
        ("data/serving", ORIGIN, Place("orders", 0, 7), None),
        ("x" * 240, REDELIVERY, Place("orders", 0, 7), Category.TARGET_UNNAMED),
        ("shop", REDELIVERY, Place("orders", 0, 7), None),
        ("shop", REDELIVERY, Place("orders", 1, 7), None),
        ("shop", REDELIVERY, Place("orders.shop.redeliver", 0, 7), None),
        ("shop", REDELIVERY, Place("orders.shop.retry.1s", 0, 7), None),
        ("shop", ORIGIN, Place("orders", 1, 7), Category.PARTITION_MISSING),
        ("shop", REDELIVERY, Place("states", 0, 7), None),
        ("shop", ORIGIN, Place("states", 0, 7), Category.COMPACTED),
        ("shop", ORIGIN, Place("refunds", 0, 7), Category.TARGET_UNREAD),
    ],
)
def test_what_keeps_a_record_from_its_target(group: str, to: str, record: Place, category: Category | None) -> None:
    letter = Candidate(LETTER, LETTER, "failed", "id", group, record, False, False, False, False, 10, (), Standing())
    assert route(to).obstacle(letter) is category


def route(to: str) -> Route:
    readers = frozenset({"orders", "orders.shop.redeliver", "states", "states.shop.redeliver"})
    return Route(to, looked_up, lambda: readers, lambda topic: True, may_wait=False)


def test_the_delivery_after_the_largest_number_has_one_that_can_be_read() -> None:
    first = Lineage("orders", 0, 7, 1, "create", ID, 1, 5, "shop", "host-1", 2**31 - 1)
    row = Contents(b"k", b"v", "[]", ID, "orders", 0, 7, 1, "create", ID, 1, 5, "shop", "host-1", 2**31 - 1)
    sent = route(REDELIVERY).ready(candidate(), row)
    assert isinstance(sent, ToSend) and split_lineage(sent.headers)[1] == first
