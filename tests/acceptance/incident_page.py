"""docs/incident.md: the story, then each query with its question, its output there, and what one concludes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from wait_registry.cli.query_file import KINDS, load_query

MAX_ROWS = 6
HEADER_LINES = 2
MAX_FIELD_LINES = 40
LOCAL_PATH = re.compile(r'File "/[^"]*?/((?:processor/|wait_registry/)?[a-z_]+\.py)"')
ROW_COUNT = re.compile(r"\(\d+ rows?\)")


@dataclass(frozen=True, slots=True)
class Chapter:
    """One query of the page: its parameters (with names of facts in braces) and what is concluded from its answer."""

    name: str
    parameters: tuple[str, ...]
    conclusion: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What `waitreg query` printed for a chapter."""

    chapter: Chapter
    parameters: list[str]
    output: str


STORY = """\
# An incident, and what every query says about it

A shop has three consumer groups. `billing` charges orders (instances `payments-1` and `payments-2`), `shipping` hands
parcels to a carrier (`parcels-1`), `refunding` pays money back (`refunds-1`). This afternoon:

1. Some cards are declined, as on any day; the orders of customer-13 come without lines, which the code can't take; one
   order is larger than the wait topic takes.
2. Somebody's script writes three records to the wait topic that are no wait records.
3. `payments-1` is killed in mid-work. What it had committed and not finished expires and is exported; the rest is
   handled by `payments-2`.
4. The carrier's service stops answering; every parcel waits for it.
5. `payments-2` is frozen for longer than its records live (a paused virtual machine). They are exported; then it wakes
   up and finishes them.
6. The sweeper goes down, and then `refunds-1` dies.

Below, every query of `sql/queries` is asked about it, with its real output. `make incident` plays all of it on the
embedded stack (records there live for 20 s instead of the default 10 minutes) and writes this page again. Long results
are cut to their first rows; the commands print below each table what to do next, which is skipped here.

The same with psql (Postgres' own client, not part of this project): `psql "$WAITREG_POSTGRES__URL" -v minutes=1 -f
sql/queries/stuck_now.sql`.
"""

CHAPTERS = (
    Chapter(
        "stuck_now",
        ("minutes=1",),
        "Twelve parcels, all of one instance, none overdue yet: either `parcels-1` lives and its carrier doesn't "
        "answer, or it has been dead for less than its TTL. The table can't tell: ask `up` and its /health/ready "
        "(here it lives).",
    ),
    Chapter(
        "waiting_by_group",
        (),
        "Two groups have something waiting. `shipping` has nothing overdue yet: a slow downstream, or a process that "
        "has been dead for less than its TTL; `up` and /health/ready tell. `refunding` has, so that is a dead process "
        "and a sweeper that doesn't sweep. `billing` is clean again.",
    ),
    Chapter("waiting_by_topic", (), "The same by topic: only `parcels` and `refunds` are touched, orders flow."),
    Chapter(
        "waiting_by_partition",
        (),
        "The refunds come from several partitions alike: no hot key and no single bad record, the process itself.",
    ),
    Chapter(
        "waiting_by_instance",
        (),
        "`refunds-1` has taken nothing since `newest_since`, and all that it left is overdue: it is dead.",
    ),
    Chapter(
        "oldest_waits",
        ("rows=5",),
        "The oldest are parcels: they have waited since the carrier went away, in their first attempt.",
    ),
    Chapter(
        "expiring_soon",
        (),
        "If the carrier's service isn't back by `first_expires_at` (or the handlers time out before), its parcels end "
        "in the dead letter topic: warn whoever reads that.",
    ),
    Chapter(
        "overdue",
        (),
        "Due, and nobody exports: `last_sweep_at` is older than these records' expiry. Start the sweeper. "
        "`view_behind` is small, so the sink is not the reason.",
    ),
    Chapter(
        "instance_in_flight",
        ("instance=payments-1", "rows=5"),
        "What `payments-1` was working on when it died: all exported, none finished late. Each may have been done all "
        "the same (killed after the call and before the tombstone): ask the bank by wait id before it is redelivered.",
    ),
    Chapter(
        "record_by_wait_id",
        ("id={late_id}",),
        "This order expired, was exported, and was finished afterwards: it has been charged, don't redeliver it.",
    ),
    Chapter(
        "record_by_key",
        ("key=customer-13",),
        "Each order of customer-13 failed at once and with the same error.",
    ),
    Chapter(
        "record_by_offset",
        ("topic=orders", "partition={partition}", "offset={offset}"),
        "Somebody has the coordinates from a log: the record is safe, in the dead letter topic at `log_offset`.",
    ),
    Chapter(
        "record",
        ("topic=orders", "partition={partition}", "offset={offset}"),
        "Was this record done? No: it is a dead letter.",
    ),
    Chapter(
        "dead_letters", ("reason=failed", "rows=2"), "The two latest failures, with their errors and their orders."
    ),
    Chapter(
        "dead_letters_by_reason",
        ("hours=1",),
        "Declined cards are business. The ValueError is a bug. The expired ones are the two processors' accidents; "
        "those that `finished_late` counts were finished after all, and the others may have been done: ask the bank by "
        "wait id before redelivering. One record was too large to register.",
    ),
    Chapter(
        "dead_letters_over_time",
        ("minutes=1", "hours=1"),
        "First the failures, then a block of expired ones: an instance died one TTL earlier.",
    ),
    Chapter(
        "burst_timeline",
        (),
        "Which minute brought what. The registrations of the parcels and of the refunds still stand.",
    ),
    Chapter(
        "poison_keys",
        (),
        "One key, one error: customer-13 is the trouble, not the downstream. Nothing more of it is on its way.",
    ),
    Chapter(
        "finished_late",
        ("rows=5",),
        "All of `payments-2`, within a moment: a frozen process, not a slow downstream. Don't redeliver these.",
    ),
    Chapter(
        "sink_freshness",
        (),
        "Every position is seconds old: what the other queries say is what is in the log.",
    ),
    Chapter(
        "last_sweeps",
        ("rows=5",),
        "The sweeps that exported the two accidents, and since then no sign of life: the sweeper is down.",
    ),
    Chapter(
        "quarantined",
        (),
        "Two records without an expiry and one whose key is not a wait ID. None of our services writes such records: "
        "find the script and revoke its permission to write to the wait topic.",
    ),
    Chapter("sizes", (), "Nothing to worry about; dead rows in `wait` are what every finished record leaves."),
    Chapter("growth_per_day", (), "What this afternoon added, by table."),
)


def page(answers: Sequence[Answer]) -> str:
    """Return the whole page."""
    parts = [STORY]
    for kind in KINDS:
        parts.append(f"## {kind[0].upper()}{kind[1:]}\n")
        parts += [_section(answer) for answer in answers if load_query(answer.chapter.name).kind == kind]
    return "\n".join(parts)


def _section(answer: Answer) -> str:
    query = load_query(answer.chapter.name)
    command = " ".join(["waitreg query", query.name, *answer.parameters])
    return f"""\
### {query.name}

{query.question}

```
$ {command}
{_shortened(answer.output)}
```

{answer.chapter.conclusion}
"""


def _shortened(output: str) -> str:
    # Where the product lies on this machine does not belong on the page.
    lines = LOCAL_PATH.sub(r'File "\1"', output).splitlines()
    # Below the rows: how many there are, and of what time the view is. A field may hold blank lines.
    end = next(number for number, line in enumerate(lines) if ROW_COUNT.fullmatch(line))
    rows, below = lines[:end], "\n".join(lines[end:]).split("\n\n")[0]
    most = MAX_FIELD_LINES if rows[0].startswith("-- row") else HEADER_LINES + MAX_ROWS
    if len(rows) > most:
        rows = [*rows[:most], f"... {len(rows) - most} more"]
    return "\n".join([*rows, below])
