"""Addresses of the console to look at: each route has some, with the rows of rows.sql.

A new route needs an entry here. Then all tests of this folder cover it.
"""

from __future__ import annotations

from typing import Final

from wait_registry.postgres.query_file import query_names

LETTER: Final = "/dead-letters/orders.dlq/1/119"
_LIST: Final = "/dead-letters?where=error%3DRefused*&by=none"

# By route: the addresses of its pages; a route that gives something else than a page has none.
ADDRESSES: Final[dict[str, tuple[str, ...]]] = {
    "/": ("/",),
    "/instances": ("/instances",),
    "/timeline": ("/timeline",),
    "/system": ("/system",),
    "/questions/{name}": (
        "/questions/last_sweeps",
        "/questions/record_by_offset",
        "/questions/burst_timeline?from=30 min ago&to=10 min ago",
        "/questions/dead_letters_over_time?hours=2&minutes=1",
    ),
    "/records": ("/records", "/records?find=0192f3a1-7c00-7000-8000-000000000001", "/records?find=customer-107"),
    "/dead-letters": ("/dead-letters", _LIST, "/dead-letters?where=group%3Dnone&by=none"),
    r"/dead-letters/{topic}/{partition:[0-9]{1,9}}/{offset:[0-9]{1,18}}": (
        LETTER,
        "/dead-letters/invoices.dlq/0/1",
        "/dead-letters/orders.dlq/0/1007",
    ),
    r"/dead-letters/{topic}/{partition:[0-9]{1,9}}/{offset:[0-9]{1,18}}/value": (),
    "/jobs": ("/jobs",),
    r"/jobs/{job:[0-9a-zA-Z-]{1,64}}": ("/jobs/7c1f09ab23de",),
    "/audit": ("/audit", "/audit?place=orders.dlq:1:119&since=365d"),
    "/help": ("/help",),
}
# Pages of one kind, which differ in their tables.
QUESTIONS: Final = tuple(f"/questions/{name}" for name in query_names())
PAGES: Final = tuple(address for addresses in ADDRESSES.values() for address in addresses)
