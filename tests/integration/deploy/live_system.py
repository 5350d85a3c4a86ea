"""All three services at work on one stack under a real Prometheus, with a load in which nearly everything happens.

They run in threads of the test's process, on the run's Spark session, and are asked over their telemetry ports.
"""

from __future__ import annotations

import os
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tests.integration.processor.running import Processors
from tests.integration.sweeper.scenario import Scenario
from tests.support.jobs import requested
from tests.support.kafka_io import Outgoing
from tests.support.prometheus import Prometheus
from tests.support.raw_headers import produce_with_header_name
from tests.support.settings import changed
from wait_registry.handler import Discard, Record, TransientError
from wait_registry.records.lineage import Lineage, append_lineage
from wait_registry.records.operation import Advanced, Changed, Kind, Mark, State, encode_event
from wait_registry.records.tombstone import Outcome, tombstone_headers
from wait_registry.records.topics import redelivery_topic
from wait_registry.settings.alerts import AlertsSettings
from wait_registry.settings.tree import Settings
from waitreg.local.ports import LOOPBACK, free_ports

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SERVICES = ("processor", "sink", "sweeper")
SLOTS = 2
# Seconds on a machine of its own; on one that others load, Spark alone takes minutes.
STEP_S = 240

# A short life and few slots, so that slots get blocked, the prefetch is full and records are renewed within seconds.
OVERRIDES: Mapping[str, Any] = {
    "processor.max_in_flight": SLOTS,
    "processor.max_attempts": 1,
    "processor.handler_timeout_s": 0.5,
    "processor.margin_s": 0.5,
    "processor.ttl_s": 4,
    "processor.prefetch_max": 6,
    "processor.retry.delays": ("1s",),
    "wait.skew_allowance_s": 0,
    "wait.max_message_bytes": 20_000,
    "sink.poll_interval_s": 0.5,
    "sweeper.interval_s": 1,
}
# Another group's record in a redelivery topic.
ANOTHER: Mapping[str, Any] = {"group": "another", "instance": "host-2", "delivery": 2}


class LiveSystem:
    """Starts the services, gives them work, and knows where they are scraped; ``receiver`` takes its alerts."""

    def __init__(self, at: Scenario, receiver: str) -> None:
        self.settings = at.settings
        self.ports = dict(zip(SERVICES, free_ports(len(SERVICES)), strict=True))
        self._at = at
        self._processors = Processors()
        self._receiver = receiver
        self._release = threading.Event()
        self._ends: list[tuple[threading.Thread, Callable[[], None]]] = []

    # ---- the services

    def start(self, spark: SparkSession) -> None:
        """Start all three, each on its port."""
        from sink.service import SinkService
        from sweeper.service import SweeperService

        again = redelivery_topic(self.settings.processor.topics[0], self.settings.processor.group)
        of_another = Lineage.of(
            self._at.wait_record().original, wait_id=str(uuid.uuid4()), wait_partition=None, wait_offset=None, **ANOTHER
        )
        self._at.topics.produce(again, [Outgoing(b"value", b"key", append_lineage((), of_another))])
        self._at.database.rows(self.settings, OLD_SWEEP, self.settings.wait.topic)
        self._processors.start(self._of("processor", {"handler": self._processors.handler(self._handle)}))
        sink, sweeper = SinkService(self._of("sink"), spark), SweeperService(self._with_alerts(), spark)
        for service in (sink, sweeper):
            thread = threading.Thread(target=service.run, daemon=True)
            thread.start()
            self._ends.append((thread, service.request_stop))

    def stop(self) -> None:
        """End all of them."""
        self._release.set()
        self._processors.close()
        for _, request_stop in self._ends:
            request_stop()
        for thread, _ in self._ends:
            thread.join(60)

    def exposed(self, service: str) -> str:
        """Return what a service answers on /metrics."""
        with urllib.request.urlopen(f"http://{LOOPBACK}:{self.ports[service]}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
        return text

    def _of(self, service: str, processor: Mapping[str, object] | None = None) -> Settings:
        settings = changed(self.settings, "telemetry", port=self.ports[service])
        return changed(settings, "processor", **(processor or {}))

    def _with_alerts(self) -> Settings:
        webhook = {"url": self._receiver}
        alerts = AlertsSettings.model_validate({"rule": [{"name": "any dead letter"}], "webhook": webhook})
        return self._of("sweeper").model_copy(update={"alerts": alerts})

    def _handle(self, record: Record) -> Discard | None:
        if record.value == b"hang":
            self._release.wait(120)
        elif record.value == b"slow":
            time.sleep(0.2)
        elif record.value == b"fail":
            raise ValueError("cannot be charged")
        elif record.value == b"fail again":
            raise TransientError("no answer")
        elif record.value == b"discard":
            return Discard("nothing to do")
        return None

    # ---- the load

    def work(self, prometheus: Prometheus) -> None:
        """Have everything happen that can be had without breaking a server."""
        topic = self.settings.processor.topics[0]
        self._at.topics.produce(topic, [*[b"hang"] * SLOTS, *[b"slow"] * 40])
        for seen in ("waitreg_processor_blocked_slots > 0", "waitreg_processor_renewed_total > 0"):
            prometheus.wait(seen, STEP_S)
        self._release.set()
        self._at.topics.produce(topic, [b"fail", b"fail again", b"discard", Outgoing(os.urandom(60_000)), b"ok"])
        produce_with_header_name(self._at.topics.bootstrap, topic, b"\xff\xfe", b"unreadable")
        late = self._register()
        self._register(expiry_policy="redeliver")
        self._at.topics.produce(self.settings.wait.topic, [Outgoing(b"no wait record", b"key", (), 0)])
        for outcome in ("exported", "redelivered"):
            prometheus.wait(f'waitreg_sweeper_rows_total{{outcome="{outcome}"}} > 0', STEP_S)
        done = Outgoing(None, late.encode(), tombstone_headers(Outcome.DONE), 0)
        self._at.topics.produce(self.settings.wait.topic, [done])
        self._register(dead_letter_topic="no.such.topic")
        self._redrive()
        for read in ("waitreg_dead_letters_of_new_error_classes > 0", "waitreg_redrive_outcomes > 0"):
            prometheus.wait(read, STEP_S)

    def _redrive(self) -> None:
        """Write what a redrive writes into the operations topic, without the record that it sends."""
        group = self.settings.processor.group
        asked = requested(group)
        job = asked.job
        what = {"job": job, "kind": Kind.REDRIVE, "group": group, "by": "anna", "dead_letters": ()}
        mark = Mark.model_validate({**what, "wait_id": str(uuid.uuid4()), "next_wait_id": str(uuid.uuid4())})
        advanced = Advanced(job=job, cursor=(), counts={"redriven": 1})
        paused = Changed(job=job, state=State.PAUSED, by="anna")
        events: list[Outgoing | bytes] = [
            Outgoing(encode_event(event), job.encode()) for event in (asked, mark, advanced, paused)
        ]
        self._at.topics.produce(self.settings.operations.topic, events)

    def _register(self, **changes: Any) -> str:
        """Write a registration that has expired, as a processor left it that died; returns its id."""
        (registered,) = self._at.register([self._at.wait_record(**changes)])
        return registered.wait_id


OLD_SWEEP = """
insert into sweep (wait_topic, started_at, duration_s, due, skipped, result, instance)
values (%s, now() - interval '90 days', 1, 0, '[]', 'done', 'host-0') returning 1
"""
