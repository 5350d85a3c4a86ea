"""A bad afternoon, played for real, and every incident query asked about it: `python -m tests.acceptance.incident`.

Processors whose handler fails, one that is killed, one that freezes, unreadable and unregistrable records, a sweeper
that is down. Then `waitreg query` is run once for each query, and its outputs replace those in docs/incident.md.
Takes about two minutes; ends with an error when a query finds no row.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.command import run_waitreg
from tests.support.kafka_io import Outgoing, produce
from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.kafka.topics import create_topics
from wait_registry.records.header_names import ORIGINAL_KEY, ORIGINAL_OFFSET, ORIGINAL_PARTITION, ORIGINAL_TOPIC
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.metrics import PROCESSOR_IN_FLIGHT
from waitreg.demo.plan import DemoPlan
from waitreg.demo.platform import INPUT_PARTITIONS, Platform, running_platform
from waitreg.local.background import Background
from waitreg.local.guard import signal_tree
from waitreg.reconcile.evidence import query
from waitreg.reconcile.screen import Screen

MAX_ROWS = 6
HEADER_LINES = 2
MAX_FIELD_LINES = 40
LOCAL_PATH = re.compile(r'File "/[^"]*?/((?:processor/|wait_registry/)?[a-z_]+\.py)"')
ROW_COUNT = re.compile(r"\(\d+ rows?\)")
COMMAND = re.compile(r"```\n\$ waitreg query (?P<name>\w+)(?P<parameters>[^\n]*)\n.*?\n```", re.DOTALL)


def answered_again(page: str, facts: Mapping[str, str], ask: Callable[[str, Sequence[str]], str]) -> str:
    """Return the page with the output that each of its queries has now.

    Args:
        page: the page of an earlier incident.
        facts: values of the parameters that name records of this incident.
        ask: returns the output of a query with parameters.
    """

    def answer(command: re.Match[str]) -> str:
        given = (parameter.partition("=") for parameter in command["parameters"].split())
        parameters = [f"{key}={facts.get(key, value)}" for key, _, value in given]
        shown = " ".join(["waitreg query", command["name"], *parameters])
        return f"```\n$ {shown}\n{_shortened(ask(command['name'], parameters))}\n```"

    return COMMAND.sub(answer, page)


def _shortened(output: str) -> str:
    # The product's folder on this machine does not belong on the page.
    lines = LOCAL_PATH.sub(r'File "\1"', output).splitlines()
    # Below the rows: their number, and the time of the tables. A field may hold blank lines.
    end = next(number for number, line in enumerate(lines) if ROW_COUNT.fullmatch(line))
    rows, below = lines[:end], "\n".join(lines[end:]).split("\n\n")[0]
    most = MAX_FIELD_LINES if rows[0].startswith("-- row") else HEADER_LINES + MAX_ROWS
    if len(rows) > most:
        rows = [*rows[:most], f"... {len(rows) - most} more"]
    return "\n".join([*rows, below])


PAGE = Path(__file__).parents[2] / "docs" / "incident.md"
PLAN = DemoPlan()
TOPICS = ("orders", "parcels", "refunds")
MAX_REGISTRATION_BYTES = 100_000
PARCELS = 12
DEADLINE_S = 240.0
TIMEOUT_S, MARGIN_S, TTL_S = 3.0, 2.5, 20.0


@dataclass(slots=True)
class Stage:
    """The running system."""

    platform: Platform
    sink: Background
    sweeper: Background

    def processor(self, instance: str, group: str, topic: str, handler: str, **more: Any) -> Background:
        """Start a processor; its records expire soon unless ``more`` says otherwise."""
        values = {
            "max_in_flight": PLAN.crash_in_flight,
            "handler_timeout_s": TIMEOUT_S,
            "max_attempts": 1,
            "ttl_s": TTL_S,
            "margin_s": MARGIN_S,
            **more,
        }
        section = ProcessorSettings(group=group, topics=(topic,), handler=handler, instance=instance, **values)
        settings = self.limited(self.platform.settings_of(section))
        create_topics(settings, INPUT_PARTITIONS)
        return self.platform.service("processor", settings, instance)

    @staticmethod
    def limited(settings: Settings) -> Settings:
        """Return the settings with a small limit for registrations."""
        return changed(settings, "wait", max_message_bytes=MAX_REGISTRATION_BYTES)

    def publish(self, topic: str, records: Sequence[Outgoing]) -> None:
        """Publish records."""
        produce(self.platform.stack.bootstrap_servers, topic, records)

    def count(self, condition: str, *parameters: Any) -> int:
        """Return the count that a `from ... where ...` has."""
        ((count,),) = query(self.platform.settings, f"select count(*) {condition}", *parameters)
        return int(count)

    def wait_for(self, condition: str, least: int = 1) -> None:
        """Wait until that count is reached."""
        wait_until(lambda: self.count(condition) >= least, DEADLINE_S, f"{least} {condition}")


def order(
    customer: int, *, takes_s: float = 0.05, card: str = "good", lines: int = 2, partition: int | None = None
) -> Outgoing:
    """Return an order."""
    value = {"customer": f"customer-{customer}", "card": card, "lines": lines, "takes_s": takes_s}
    return Outgoing(json.dumps(value).encode(), f"customer-{customer}".encode(), (("tenant", b"acme"),), partition)


def slow_orders(count: int, first: int) -> list[Outgoing]:
    """Return orders whose charge takes most of its limit, spread evenly over the partitions."""
    slow_s = TIMEOUT_S * 0.7
    return [order(first + number, takes_s=slow_s, partition=number % INPUT_PARTITIONS) for number in range(count)]


def unreadable() -> list[Outgoing]:
    """Return records of another client in the wait topic: without an expiry, and with a key that is no wait ID."""
    origin = ((ORIGINAL_TOPIC, b"orders"), (ORIGINAL_PARTITION, b"0"), (ORIGINAL_OFFSET, b"7"), (ORIGINAL_KEY, b"c-7"))
    half = [Outgoing(b"{}", str(uuid.uuid4()).encode(), origin) for _ in range(2)]
    return [*half, Outgoing(b"{}", b"order-4711")]


@contextmanager
def stage() -> Iterator[Stage]:
    """Start everything but the processors."""
    # A killed service's JVM may still write there when we leave.
    temporary = tempfile.TemporaryDirectory(prefix="waitreg-incident-", ignore_cleanup_errors=True)
    with temporary as name, running_platform(Path(name), PLAN) as platform:
        shutil.copy(Path(__file__).with_name("incident_shop.py"), Path(name, "shop.py"))
        platform.settings = Stage.limited(platform.settings)
        create_topics(platform.settings_of(ProcessorSettings(topics=TOPICS)), INPUT_PARTITIONS)
        sink, sweeper = (platform.service(command, platform.settings) for command in ("sink", "sweeper"))
        sink.wait_ready(DEADLINE_S)
        sweeper.wait_ready(DEADLINE_S)
        yield Stage(platform, sink, sweeper)


def is_working(processor: Background) -> bool:
    """Return whether all its slots are taken: the tables show it only after the sink has read it."""
    _, metrics = processor.get("/metrics")
    return f"{PROCESSOR_IN_FLIGHT.name} {float(PLAN.crash_in_flight)}" in metrics.decode()


def parcels_hang(shop: Stage) -> None:
    """The carrier of the parcels doesn't answer: its records wait until the end."""
    parcels = shop.processor(
        "parcels-1",
        "shipping",
        "parcels",
        "shop:send",
        ttl_s=540,
        handler_timeout_s=250,
        max_in_flight=PARCELS,
        prefetch_max=PARCELS,
    )
    parcels.wait_ready(DEADLINE_S)
    shop.publish("parcels", [Outgoing(b"{}", b"parcel-%d" % number) for number in range(PARCELS)])


def orders_fail(shop: Stage) -> None:
    """Some cards are declined, one customer's orders are broken, one order is too large to register."""
    declined = [order(number, card="declined") for number in range(20, 25)]
    poison = [order(13, lines=0) for _ in range(4)]
    shop.publish("orders", [order(number) for number in range(40)] + declined + poison)
    shop.publish("orders", [Outgoing(os.urandom(MAX_REGISTRATION_BYTES + 50_000), b"customer-99")])
    shop.wait_for("from dead_letter where reason in ('failed', 'unregistrable')", len(declined) + len(poison) + 1)


def payments_die(shop: Stage, victim: Background) -> None:
    """One of two processors is killed in mid-work; what it had committed expires and is exported."""
    shop.publish("orders", slow_orders(160, 100))
    # Once the tables show its rows a commit was due. Uncommitted records go to the other processor and don't expire.
    shop.wait_for("from wait where instance = 'payments-1'")
    wait_until(lambda: is_working(victim), DEADLINE_S, "work of payments-1")
    victim.kill()
    shop.wait_for("from dead_letter where reason = 'expired' and instance = 'payments-1'")


def payments_freeze(shop: Stage, frozen: Background) -> None:
    """The other one is paused for longer than its records live, continues, and finishes what has been exported."""
    wait_until(lambda: not is_working(frozen), DEADLINE_S, "the end of its earlier work")
    shop.publish("orders", slow_orders(40, 300))
    wait_until(lambda: is_working(frozen), DEADLINE_S, "work of payments-2")
    signal_tree(frozen.pid, signal.SIGSTOP)
    try:
        shop.wait_for("from dead_letter where reason = 'expired' and instance = 'payments-2'")
    finally:
        signal_tree(frozen.pid, signal.SIGCONT)
    shop.wait_for("from dead_letter where finished_late")


def sweeper_is_down(shop: Stage) -> None:
    """The sweeper is stopped and a third group's processor killed: what expires now stays."""
    refunds = shop.processor("refunds-1", "refunding", "refunds", "shop:charge")
    refunds.wait_ready(DEADLINE_S)
    shop.sweeper.stop()
    shop.publish("refunds", slow_orders(40, 400))
    wait_until(lambda: is_working(refunds), DEADLINE_S, "work of refunds-1")
    refunds.kill()
    shop.wait_for("from wait where instance = 'refunds-1' and wait_expiration_time < now()")


def play(screen: Screen, shop: Stage) -> None:
    """Let it all go wrong."""
    screen.step("A group works on orders")
    victim, frozen = (shop.processor(name, "billing", "orders", "shop:charge") for name in ("payments-1", "payments-2"))
    victim.wait_ready(DEADLINE_S)
    frozen.wait_ready(DEADLINE_S)
    screen.step("Orders fail, one is too large; another client writes to the wait topic")
    orders_fail(shop)
    shop.publish(shop.platform.settings.wait.topic, unreadable())
    shop.wait_for("from quarantine", 3)
    screen.step("payments-1 is killed (SIGKILL) in mid-work")
    payments_die(shop, victim)
    screen.step("The carrier of the parcels hangs")
    parcels_hang(shop)
    screen.step("payments-2 is frozen (SIGSTOP) until its records have been exported, and continues")
    payments_freeze(shop, frozen)
    screen.step("The sweeper is stopped, refunds-1 killed")
    sweeper_is_down(shop)
    shop.wait_for("from wait where instance = 'parcels-1' and created_at < now() - interval '1 minute'", PARCELS)


def facts(shop: Stage) -> dict[str, str]:
    """Return the names of the records that the queries are asked about."""
    ((late_id,),) = query(
        shop.platform.settings, "select wait_expiration_uuid from dead_letter where finished_late limit 1"
    )
    ((partition, offset),) = query(
        shop.platform.settings,
        """
        select original_partition, original_offset from dead_letter
        where reason = 'expired' and instance = 'payments-1' order by dead_letter_time limit 1
        """,
    )
    return {"id": late_id, "partition": str(partition), "offset": str(offset)}


def answered_page(shop: Stage, directory: Path) -> str:
    """Ask every query of the page, as a user does, and return the page with the answers.

    Raises:
        AssertionError: a query ended with an error or found no row.
    """

    def ask(name: str, parameters: Sequence[str]) -> str:
        asked = run_waitreg(directory, "query", name, *parameters, settings=shop.platform.settings)
        assert asked.code == 0, asked.errors
        assert "(0 rows)" not in asked.output, f"{name} found no row:\n{asked.output}"
        return asked.output

    return answered_again(PAGE.read_text("utf-8"), facts(shop), ask)


def main() -> int:
    """Play, ask, write the page."""
    screen = Screen()
    screen.step("Kafka, Postgres, sink and sweeper start")
    with stage() as shop, tempfile.TemporaryDirectory() as directory:
        play(screen, shop)
        screen.step("Every query is asked")
        PAGE.write_text(answered_page(shop, Path(directory)), "utf-8")
    screen.step("docs/incident.md is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
