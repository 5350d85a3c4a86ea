"""Original headers can always be cut out exactly, whatever they are and however often a record goes round."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.records.strategies import ATTEMPTS, FAILURES, HEADERS, LINEAGES, ORIGINALS, TEXTS
from wait_registry.records import header_names
from wait_registry.records.consumed import Consumed, consumed
from wait_registry.records.dead_letter import Failure, dead_letter_headers, decode_dead_letter
from wait_registry.records.headers import Headers
from wait_registry.records.lineage import Lineage, append_lineage, redelivery_headers, split_lineage
from wait_registry.records.original import Original, Source

BLOCKS = st.tuples(HEADERS, LINEAGES).map(lambda pair: tuple(append_lineage(*pair)))
# Headers that hold a real block, whole or with something put into, behind or before it.
IMITATIONS = st.tuples(HEADERS, BLOCKS, HEADERS).map(lambda parts: parts[0] + parts[1] + parts[2])
ANY_HEADERS = HEADERS | BLOCKS | IMITATIONS
KNOWN = st.tuples(LINEAGES, TEXTS, ATTEMPTS).map(lambda parts: parts[0]._replace(group=parts[1], delivery=parts[2]))


@given(ANY_HEADERS, LINEAGES)
def test_what_is_appended_is_cut_off_exactly(headers: Headers, lineage: Lineage) -> None:
    assert split_lineage(append_lineage(headers, lineage)) == (headers, lineage, {})


@given(ANY_HEADERS)
def test_splitting_loses_no_header(headers: Headers) -> None:
    originals, lineage, _ = split_lineage(headers)
    assert originals == headers[: len(originals)]
    if lineage is None:
        assert originals == headers
    else:
        assert headers[len(originals)] == (header_names.WAIT_LINEAGE, str(len(originals)).encode())


@given(ANY_HEADERS, st.lists(KNOWN, min_size=1, max_size=5), FAILURES)
def test_the_block_is_replaced_and_never_stacked(headers: Headers, rounds: list[Lineage], failure: Failure) -> None:
    carried: list[tuple[str, bytes | None]] = redelivery_headers(headers, rounds[0])
    for number, lineage in enumerate(rounds):
        originals, _, _ = split_lineage(carried)
        odd = number % 2 == 1
        carried = dead_letter_headers(originals, lineage, failure) if odd else redelivery_headers(originals, lineage)
    assert split_lineage(carried)[0] == headers
    assert split_lineage(carried)[1] == rounds[-1]


@given(ANY_HEADERS, LINEAGES, FAILURES)
def test_a_dead_letter_reads_back_as_it_was_written(headers: Headers, lineage: Lineage, failure: Failure) -> None:
    read = decode_dead_letter(dead_letter_headers(headers, lineage, failure))
    assert (read.headers, read.lineage, read.failure) == (headers, lineage, failure)


@given(ANY_HEADERS)
def test_any_headers_of_a_dead_letter_topic_are_kept_or_understood(headers: Headers) -> None:
    read = decode_dead_letter(headers)
    assert (read.lineage is None) == (read.failure is None)
    assert read.headers == headers or read.lineage is not None


@given(ORIGINALS, KNOWN, st.sampled_from(["redeliver", "dead letter"]), FAILURES, ANY_HEADERS)
def test_the_same_group_gets_the_first_deliverys_record_and_counts_on(
    now: Original, lineage: Lineage, kind: str, failure: Failure, headers: Headers
) -> None:
    lineage = lineage._replace(
        original_partition=1, original_offset=2, original_timestamp_ms=3, original_timestamp_type="append"
    )
    assert lineage.group is not None
    written = (
        redelivery_headers(headers, lineage) if kind == "redeliver" else dead_letter_headers(headers, lineage, failure)
    )
    again = consumed(*now._replace(headers=tuple(written)), lineage.group, lineage.original_topic, True)
    assert again.original == Original(lineage.original_topic, 1, 2, 3, "append", now.key, now.value, headers)
    assert again.source == Source(now.topic, now.partition, now.offset)
    assert (again.delivery, again.max_deliveries) == (lineage.delivery, lineage.max_deliveries)


@pytest.mark.guarantee("P1.27")
@pytest.mark.parametrize("first", ["orders", "orders.shop.redeliver", "orders.shop.retry.1s", "orders.web.redeliver"])
def test_a_record_put_into_an_own_topic_keeps_its_identity(first: str) -> None:
    lineage = Lineage(first, 1, 2, 3, "append", "00000000-0000-8000-8000-000000000001", 4, 5, "shop", "i", 2)
    headers = tuple(redelivery_headers((), lineage))
    again = consumed("orders.shop.retry.1m", 0, 7, 8, "append", b"k", b"v", headers, "shop", "orders")
    assert (again.original[:3] == (first, 1, 2)) is (first != "orders.web.redeliver")


@pytest.mark.guarantee("P5.4")
@given(ORIGINALS, KNOWN, ANY_HEADERS)
def test_another_group_gets_the_record_with_all_headers(now: Original, lineage: Lineage, headers: Headers) -> None:
    written = tuple(append_lineage(headers, lineage))
    got = consumed(*now._replace(headers=written), f"not {lineage.group}", now.topic)
    assert got == Consumed(now._replace(headers=written), None, 1)


@pytest.mark.guarantee("P1.26")
@given(ORIGINALS, KNOWN, ANY_HEADERS, st.sampled_from(["from the input", "of another input", "of another group"]))
def test_no_writer_gives_another_identity(now: Original, lineage: Lineage, headers: Headers, case: str) -> None:
    assert lineage.group is not None
    group = f"not {lineage.group}" if case == "of another group" else lineage.group
    now = now._replace(topic=f"not {lineage.original_topic}", headers=tuple(append_lineage(headers, lineage)))
    if case == "from the input":
        lineage, input_topic = lineage._replace(original_topic=now.topic), now.topic
    else:
        input_topic = lineage.original_topic if case == "of another group" else f"also {now.topic}"
    got = consumed(*now, group, input_topic)
    assert (got.source, got.delivery, got.foreign) == (None, 1, case == "of another group")
    assert got.foreign or got.original == now


@given(ORIGINALS, TEXTS)
def test_consuming_any_record_loses_nothing(now: Original, group: str) -> None:
    original, source, delivery, _, foreign, _ = consumed(*now, group, f"not {now.topic}")
    assert (original.key, original.value) == (now.key, now.value)
    assert original.headers == now.headers[: len(original.headers)]
    if source is None and not foreign:
        assert (original, delivery) == (now, 1)


def test_a_record_without_headers_may_have_none_or_an_empty_list() -> None:
    now = Original("orders", 0, 0, 0, "create", None, None, ())
    assert consumed(*now[:-1], None, "g", "i") == consumed(*now[:-1], [], "g", "i") == Consumed(now, None, 1)
    assert split_lineage(None) == ((), None, {})
    assert decode_dead_letter(None).headers == ()
