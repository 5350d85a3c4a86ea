"""The contenders of row 10: each calls a service all the time, N calls at once, and is measured from outside.

The service counts the calls, and /proc has the CPU time of the caller's process; so the same is measured of all, and
nothing is added to any. The service's own CPU time doesn't count.

A consumer's records have values of 200 bytes. The product is `waitreg processor` in `deferred`, everything else at its
defaults, with its metrics read every 5 s as in the other rows. Its records are published once it has its partitions.
The Parallel Consumer finds its records there. The bare clients send 200 bytes without Kafka.
"""

from __future__ import annotations

import re
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from bench.contenders import calling_handlers, parallel_consumer
from bench.contenders.called_server import CalledServer, called_server
from bench.contenders.flow_program import FlowArguments
from bench.contenders.flows import JVM_WARM_S, WARM_S
from bench.contenders.java_programs import java_program
from bench.contenders.late_records import publishing_once_assigned
from bench.contenders.load import PARTITIONS, create, delete, held
from bench.contenders.meter import NS_PER_S, cpu_ns_of
from bench.contenders.product import processor_settings, waitreg
from bench.harness.process import Child, started
from bench.harness.row import Bench, Contender, Figures
from waitreg.local.environment import as_environment
from waitreg.local.ports import LOOPBACK, free_ports

START_S: Final = 60.0
POLL_S: Final = 0.05
SCRAPE_EVERY_S: Final = 5.0
US_PER_S: Final = 1_000_000
# What ends without an answer that counts: the turn fails.
UNDONE: Final = re.compile(r'^waitreg_processor_settled_total\{[^}]*outcome="(?!done")[^}]*\} (?!0\.0$)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Work:
    """What a caller does.

    Args:
        topic: what the Parallel Consumer consumes.
        in_flight: N, the calls at once.
        delay_ms: how long an answer takes.
        records: what is published for the product; more than it can call for in the time.
        seconds: how long it is measured after its warm-up.
    """

    topic: str
    in_flight: int
    delay_ms: int
    records: int
    seconds: float


# What is running: its process, and what to do now and then while it is watched.
Running = tuple[Child, Callable[[], None]]
Start = Callable[[Bench, Work, CalledServer], AbstractContextManager[Running]]


@dataclass(frozen=True, slots=True)
class Caller:
    """What calls the service, after `start`, until the block is left; it is measured after `warm_s`."""

    name: str
    start: Start
    warm_s: float = WARM_S


def calling(caller: Caller, work: Work) -> Contender:
    """Return the contender: calls per second, and CPU of its process per call, user and system, all threads."""

    def measure(bench: Bench) -> Figures:
        warm_s = 0.0 if bench.quick else caller.warm_s
        with called_server(bench, work.delay_ms) as server, caller.start(bench, work, server) as (child, look):
            _await(child, server, look)
            _watch(child, look, warm_s)
            before = server.answered(), time.monotonic_ns(), cpu_ns_of(child.pid)
            _watch(child, look, work.seconds)
            after = server.answered(), time.monotonic_ns(), cpu_ns_of(child.pid)
        calls, passed_ns, cpu_ns = (late - early for late, early in zip(after, before, strict=True))
        if not calls or not cpu_ns:
            raise ValueError(f"{calls} calls took {cpu_ns / NS_PER_S:g} s of CPU time")
        per_s, cpu_s = calls / passed_ns * NS_PER_S, cpu_ns / NS_PER_S
        return {"calls_per_s": per_s, "calls_per_cpu_s": calls / cpu_s, "cpu_us_per_call": cpu_s / calls * US_PER_S}

    return Contender(caller.name, measure)


def _await(child: Child, server: CalledServer, look: Callable[[], None]) -> None:
    """Wait for the first call."""
    deadline_s = time.monotonic() + START_S
    while not server.answered():
        if time.monotonic() > deadline_s:
            raise child.error(f"made no call in {START_S:g} s")
        _watch(child, look, POLL_S)


def _watch(child: Child, look: Callable[[], None], seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0:
        child.require_running()
        look()
        time.sleep(min(left_s, POLL_S))


def _program(*command: str) -> Start:
    """Return what starts a bare client: a module of the benchmark."""

    @contextmanager
    def start(bench: Bench, work: Work, server: CalledServer) -> Iterator[Running]:
        arguments = [sys.executable, "-m", *command, server.url, str(work.in_flight)]
        with started(arguments, bench.directory) as child:
            yield child, _nothing

    return start


@contextmanager
def _java_client(bench: Bench, work: Work, server: CalledServer) -> Iterator[Running]:
    with started(java_program(bench, "BareClient", server.url, str(work.in_flight)), bench.directory) as child:
        yield child, _nothing


@contextmanager
def _parallel_consumer(bench: Bench, work: Work, server: CalledServer) -> Iterator[Running]:
    arguments = (work.topic, f"bench.{uuid4().hex[:12]}", work.in_flight, server.url)
    with started(parallel_consumer.calling_command(bench, *arguments), bench.directory) as child:
        yield child, _nothing
        _require_more(held(create(bench.kafka, work.topic), work.topic, PARTITIONS), server)


def _require_more(records: int, server: CalledServer) -> None:
    """Raise ValueError if the contender had no more records to call for at the end of the measuring."""
    if (answered := server.answered()) >= records:
        raise ValueError(f"{answered} calls for {records} records: give the row more records")


def _nothing() -> None:
    pass


def _processor(handler: Callable[[CalledServer], str]) -> Start:
    """Return what starts the processor of the measured checkout with a handler."""

    @contextmanager
    def start(bench: Bench, work: Work, server: CalledServer) -> Iterator[Running]:
        topic, group, (port,) = f"bench.r10.late-{uuid4().hex[:8]}", f"bench.{uuid4().hex[:12]}", free_ports(1)
        arguments = FlowArguments(bench.kafka, topic, group, work.in_flight, "", 0, 0, START_S)
        settings = processor_settings(arguments, handler=handler(server), registration="deferred")
        variables = {
            **as_environment(settings),
            calling_handlers.VARIABLE: server.url,
            "WAITREG_TELEMETRY__PORT": str(port),
        }
        try:
            with publishing_once_assigned(bench.kafka, topic, group, work.records) as await_records:
                waitreg(bench, variables, "topics", "create")
                command = [str(bench.product.waitreg), "processor"]
                with started(command, bench.directory, variables, name="processor") as child:
                    scraper = Scraper(f"http://{LOOPBACK}:{port}/metrics")
                    await_records()
                    yield child, scraper.look
                    scraper.require_done()
                    _require_more(work.records, server)
        finally:
            delete(bench.kafka, topic, f"{group}.wait", f"{group}.dlq")

    return start


class Scraper:
    """Reads the metrics of a processor, as Prometheus would."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._scraped_s = time.monotonic()

    def look(self) -> None:
        """Read them if that is due."""
        if time.monotonic() - self._scraped_s >= SCRAPE_EVERY_S:
            self._read()

    def require_done(self) -> None:
        """Raise ValueError if a record had another outcome than `done`."""
        if undone := UNDONE.findall(self._read()):
            raise ValueError(f"calls failed: {undone}")

    def _read(self) -> str:
        self._scraped_s = time.monotonic()
        with urllib.request.urlopen(self._url, timeout=5) as answer:
            return bytes(answer.read()).decode()


def _is(handler: str) -> Callable[[CalledServer], str]:
    return lambda _: handler


HTTP_PUSH: Final = Caller("HTTP push", _processor(lambda server: server.url))
GRPC_PUSH: Final = Caller("gRPC push", _processor(lambda server: server.grpc_address))
WITH_AIOHTTP: Final = Caller("Python handler with aiohttp", _processor(_is(calling_handlers.WITH_AIOHTTP)))
PLAIN_FUNCTION: Final = Caller("plain function with http.client", _processor(_is(calling_handlers.PLAIN_FUNCTION)))
BARE_AIOHTTP: Final = Caller("bare aiohttp", _program("bench.contenders.bare_clients", "aiohttp"))
BARE_HTTPTOOLS: Final = Caller("bare httptools", _program("bench.contenders.bare_clients", "httptools"))
BARE_LIBCURL: Final = Caller("bare libcurl, HTTP/2", _program("bench.contenders.bare_clients", "libcurl"))
JAVA_CLIENT: Final = Caller("plain Java client", _java_client, JVM_WARM_S)
PARALLEL_CONSUMER: Final = Caller("Parallel Consumer with Vert.x", _parallel_consumer, JVM_WARM_S)
