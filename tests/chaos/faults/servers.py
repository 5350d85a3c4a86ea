"""Faults of the broker and of Postgres, and an input topic that grows while it is consumed."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.chaos.faults.processes import stopped
from tests.chaos.schedule import PlannedFault
from tests.chaos.service import listens
from tests.chaos.stage import Scene
from wait_registry.local.broker import EmbeddedBroker
from wait_registry.local.guard import process_tree
from wait_registry.local.postgres import EmbeddedPostgres

Server = EmbeddedBroker | EmbeddedPostgres

# Ours, this one excepted: of the services alone, whoever looks on is left.
_SESSIONS = "from pg_stat_activity where application_name like 'waitreg%' and pid <> pg_backend_pid()"


def kill_server(scene: Scene, fault: PlannedFault) -> str:
    """Crash it (SIGKILL), and start it again after a while."""
    return _away(scene, fault, lambda server: server.kill())


def stop_server(scene: Scene, fault: PlannedFault) -> str:
    """Stop it in order, and start it again after a while."""
    return _away(scene, fault, lambda server: server.stop())


def freeze_server(scene: Scene, fault: PlannedFault) -> str:
    """Freeze it: connections stay open, nothing answers; then let it continue."""
    server = _server(scene, fault)
    with scene.locks[fault.target]:
        scene.begins(fault)
        try:
            server.pause()
            proof = stopped(process_tree(server.pid))
            scene.pause(fault.for_s)
        finally:
            server.resume()
    return proof


def end_sessions(scene: Scene, fault: PlannedFault) -> str:
    """Have Postgres end the sessions of all services."""
    with (
        scene.locks["postgres"],
        psycopg.connect(scene.stage.stack.postgres_url, autocommit=True, application_name="chaos") as connection,
    ):
        scene.begins(fault)
        ended = connection.execute(f"select pid, pg_terminate_backend(pid) {_SESSIONS}".encode()).fetchall()
    pids = [str(pid) for pid, done in ended if done]
    return f"sessions {', '.join(pids)} were ended" if pids else ""


def _away(scene: Scene, fault: PlannedFault, take_away: Callable[[Server], None]) -> str:
    server = _server(scene, fault)
    port = server.port if isinstance(server, EmbeddedPostgres) else server.ports[0]
    with scene.locks[fault.target]:
        pid = server.pid
        scene.begins(fault)
        try:
            take_away(server)
            gone = not psutil.pid_exists(pid) and not listens(port)
            scene.pause(fault.for_s)
        finally:
            server.start()
    return f"pid {pid} was gone, port {port} refused" if gone else ""


def _server(scene: Scene, fault: PlannedFault) -> Server:
    stack = scene.stage.stack
    return stack.broker if fault.target == "broker" else stack.postgres


MORE = 2
ATTEMPTS = 30
PAUSE_S = 1.0
REQUEST_S = 10.0


def add(scene: Scene, fault: PlannedFault) -> str:
    """Add partitions to the input topic; a broker that is away is waited for."""
    topic = scene.place.input
    admin = AdminClient({"bootstrap.servers": scene.stage.stack.bootstrap_servers, "log_level": 0})
    with scene.locks["input"]:
        for _ in range(ATTEMPTS):
            try:
                return _grow(admin, topic, lambda: scene.begins(fault))
            except KafkaException:
                scene.pause(PAUSE_S)
    return ""


def _grow(admin: AdminClient, topic: str, begins: Callable[[], None]) -> str:
    before = len(admin.list_topics(topic, timeout=REQUEST_S).topics[topic].partitions)
    if not before:
        raise KafkaException("no answer about the topic")
    begins()
    asked = admin.create_partitions([NewPartitions(topic, before + MORE)], request_timeout=REQUEST_S)
    asked[topic].result(REQUEST_S)
    return f"{topic} has {before + MORE} partitions instead of {before}"
