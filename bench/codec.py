"""What the codec costs per record: run `python bench/codec.py`; prints us per call, the best of several rounds.

Takes some ten seconds and needs nothing else.
"""

from __future__ import annotations

import argparse
import timeit
from collections.abc import Callable, Sequence
from typing import Final

from wait_registry.records.consumed import consumed
from wait_registry.records.headers import Headers, encode_headers_json
from wait_registry.records.original import Original
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.wait_id import wait_id
from wait_registry.records.wait_record import WaitRecordEncoder, decode_wait_record

CALLS: Final = 50_000
ROUNDS: Final = 5
TIME_MS: Final = 1_795_227_600_123
PLAIN: Final[Headers] = (("content-type", b"application/json"), ("tenant", b"acme"), ("event-id", b"0123456789abcdef"))
TRACED: Final[Headers] = (*PLAIN, ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
CLUSTER: Final = "MkU3OEVBNTcwNTJENDM2Qg"


def measured() -> Sequence[tuple[str, Callable[[], object]]]:
    """Return what is measured, by name."""
    plain = Original("orders", 3, 1_234_567, TIME_MS, "create", b"customer-17", b"{}", PLAIN)
    traced = plain._replace(headers=TRACED)
    encoder = WaitRecordEncoder("billing", "host-1-2026-11-21T02:20:00Z", "waitreg.dlq", "dlq", 3)
    identity = wait_id(CLUSTER, "orders", 3, 1_234_567, "billing", TIME_MS)
    encoded = encoder.headers(plain, identity, TIME_MS)
    listed = list(PLAIN)
    return (
        ("wait_id", lambda: wait_id(CLUSTER, "orders", 3, 1_234_567, "billing", TIME_MS)),
        ("consumed, 3 headers", lambda: consumed("orders", 3, 7, TIME_MS, "create", b"k", b"v", listed, "billing")),
        ("WaitRecordEncoder.headers, 3 headers", lambda: encoder.headers(plain, identity, TIME_MS)),
        ("WaitRecordEncoder.headers, 4 with trace", lambda: encoder.headers(traced, identity, TIME_MS)),
        ("encode_headers_json, 3 headers", lambda: encode_headers_json(PLAIN)),
        ("tombstone_headers", lambda: tombstone_headers(Outcome.DONE)),
        ("decode_wait_record, 3 headers", lambda: decode_wait_record(identity, b"{}", encoded)),
    )


def main() -> None:
    """Print one line per function."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name, call in measured():
        best_s = min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS
        print(f"{name:42} {best_s * 1e6:6.2f} us")


if __name__ == "__main__":
    main()
