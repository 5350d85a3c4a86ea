"""What a generator that died doesn't know of was promised as well."""

from __future__ import annotations

from tests.chaos.history.reading import with_input
from tests.chaos.history.record import UNREADABLE_HEADERS, RawRecord, content_of
from wait_registry.demo.fingerprint import fingerprint
from wait_registry.demo.manifest import Published

LISTED = Published("orders", 0, 3, 17, fingerprint(b"k", b"v", [("a", b"b")]))


def test_records_that_stand_there_unlisted_are_added() -> None:
    unlisted = RawRecord("orders", 1, 0, 18, None, b"", (("a", None),))
    known = RawRecord("orders", 0, 3, 17, b"k", b"v", (("a", b"b"),))
    assert with_input([LISTED], [known, unlisted]) == [LISTED, Published("orders", 1, 0, 18, content_of(unlisted))]


def test_a_listed_one_whose_headers_nobody_can_read_says_so() -> None:
    (completed,) = with_input([LISTED], [RawRecord("orders", 0, 3, 17, b"k", b"v", None)])
    assert completed.fingerprint.headers == UNREADABLE_HEADERS
    assert completed.fingerprint.value == LISTED.fingerprint.value
