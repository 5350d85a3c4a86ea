"""The command line that every contender takes, so that all are started alike and measured between the same records."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HANDLERS: Final = ("noop", "timed", "latency")


@dataclass(frozen=True, slots=True)
class FlowArguments:
    """What to consume, how to handle it, and between which records to measure.

    Attributes:
        kafka: bootstrap servers.
        topic: consumed from its beginning.
        group: consumer group, of this run alone.
        in_flight: handlers that run at once, at most.
        handler: `noop` does nothing, `timed` sleeps as long as the value says, `latency` notes the record's age.
        from_record: the call whose end begins the measurement, from 1.
        to_record: the call whose end ends it.
        limit_s: when to give up, s.
        beside_pid: a process whose processor time is measured too, if the contender can (those in Python); 0 for none.
    """

    kafka: str
    topic: str
    group: str
    in_flight: int
    handler: str
    from_record: int
    to_record: int
    limit_s: float
    beside_pid: int = 0

    def command_line(self) -> list[str]:
        """Return them as arguments of a contender."""
        return [
            *("--kafka", self.kafka, "--topic", self.topic, "--group", self.group),
            *("--in-flight", str(self.in_flight), "--handler", self.handler),
            *("--from-record", str(self.from_record), "--to-record", str(self.to_record)),
            *("--limit-s", f"{self.limit_s:g}"),
            *(("--beside-pid", str(self.beside_pid)) if self.beside_pid else ()),
        ]


def parser(about: str) -> argparse.ArgumentParser:
    """Return a parser of these arguments, to which a contender may add its own."""
    made = argparse.ArgumentParser(description=about)
    made.add_argument("--kafka", required=True, help="bootstrap servers")
    made.add_argument("--topic", required=True, help="topic to consume, from its beginning")
    made.add_argument("--group", required=True, help="consumer group, of this run alone")
    made.add_argument("--in-flight", type=int, default=50, help="handlers at once, at most (50)")
    made.add_argument("--handler", choices=HANDLERS, default="noop", help="what is done with a record (noop)")
    made.add_argument("--from-record", type=int, required=True, help="measure from the end of this call, from 1")
    made.add_argument("--to-record", type=int, required=True, help="measure until the end of this call")
    made.add_argument("--limit-s", type=float, default=300.0, help="give up after this, s (300)")
    made.add_argument("--beside-pid", type=int, default=0, help="measure this process' processor time too (none)")
    return made


def flow_arguments(given: argparse.Namespace) -> FlowArguments:
    """Return the arguments of a parsed command line; ValueError when nothing could be measured with them."""
    found = FlowArguments(
        given.kafka,
        given.topic,
        given.group,
        given.in_flight,
        given.handler,
        given.from_record,
        given.to_record,
        given.limit_s,
        given.beside_pid,
    )
    if not 1 <= found.from_record < found.to_record or found.in_flight < 1:
        raise ValueError(
            f"saw --from-record {found.from_record}, --to-record {found.to_record}, --in-flight {found.in_flight}; "
            "expected 1 or more, in this order, and at least 1 in flight"
        )
    return found


def parse(about: str, argv: Sequence[str] | None = None) -> FlowArguments:
    """Parse the command line of a contender that has no arguments of its own."""
    return flow_arguments(parser(about).parse_args(argv))
